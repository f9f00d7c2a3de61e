# a reader that leaves early is no failure
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report --json app.tare | head -c 10
echo " ${PIPESTATUS[0]}"
