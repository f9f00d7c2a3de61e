# the whole answer: head, tree, counters and marks, foot
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report app.tare
