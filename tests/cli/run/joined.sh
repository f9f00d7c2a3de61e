# a program that cannot be started leaves no trace of its own, and the trace of another that runs alone
tare run -q --no-save --trace both.tare -- sleep 3 & sleep 1
tare run -q --no-save --trace both.tare -- ./no-such-program 2>/dev/null; echo $?
tare run -q --no-save --trace own.tare -- ./no-such-program 2>/dev/null; echo $?
ls
wait
