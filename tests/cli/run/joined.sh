# a second sampler is refused, and the trace of the first left alone; a program that cannot be started leaves no trace
. "$TARE_SRC/tests/cli/waiting.bash"
tare run -q --no-save --trace both.tare -- sh -c 'echo >up; until [ -e end ]; do sleep 0.05; done' & lines up 1
tare run -q --no-save --trace both.tare -- echo started 2>&1 | sed 's/process [0-9]*/process N/'; echo ${PIPESTATUS[0]}
tare run -q --no-save --trace own.tare -- ./no-such-program 2>/dev/null; echo $?
ls | grep -v '^up$'
touch end; wait
tare report both.tare | sed -n 's/^lost *//p'
