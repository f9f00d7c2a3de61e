# a child that the program never waited for is accounted for, and not said to run
tare run -q --no-save --interval 50ms -o run.json -- sh -c 'sh -c "exit 0" & exec sleep 0.3'; echo $?
grep -o '"still_running": [0-9]*' run.json
