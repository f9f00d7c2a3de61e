# SIGTERM: what was measured is kept, and the command that was being measured does not live on
tare bench --budget 60s --precision 0.0001 -- sleep 31.4159 >out 2>err &
sleep 1; kill -TERM $!; wait $!; echo $?
pgrep -f 'sleep 31.4159' | wc -l
