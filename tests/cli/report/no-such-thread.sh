. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report --thread 1 app.tare
