# the program's code, its stdin and stdout; 128 + n for a signal; what a shell gives for what cannot be started
printf 'a\0b\n' | tare run -q --no-save -- cat | od -An -c
tare run -q --no-save -- sh -c 'echo out; echo err >&2; exit 7'; echo $?
tare run -q --no-save -- sh -c 'kill -9 $$'; echo $?
tare run -q --no-save -- sh -c 'kill -TERM $$'; echo $?
tare run --no-save -- ./no-such-program; echo $?
echo text >plain; tare run --no-save -- ./plain; echo $?
tare run --no-save -- no-such-program-in-path; echo $?
ls
tare run --no-save -- ./; echo $?
