# kill -9: everything up to the end is there, and the report says what happened
. "$TARE_SRC/tests/cli/report/program.bash"
program
(record kill) 2>/dev/null
tare report app.tare
