# killed half-way: no document, no temporary file
tare bench --budget 60s --precision 0.0001 -- sleep 0.01 >out 2>err &
sleep 1; kill -9 $!; wait $! 2>/dev/null; echo $?
find . -name '*.json*' -o -name '.*tmp*' | wc -l
