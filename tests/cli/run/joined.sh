# a second sampler is refused, and the trace of the first left alone; a program that cannot be started leaves no trace
tare run -q --no-save --trace both.tare -- sleep 3 & sleep 1
tare run -q --no-save --trace both.tare -- echo started 2>&1 | sed 's/process [0-9]*/process N/'; echo ${PIPESTATUS[0]}
tare run -q --no-save --trace own.tare -- ./no-such-program 2>/dev/null; echo $?
ls
wait
tare report both.tare | sed -n 's/^lost *//p'
