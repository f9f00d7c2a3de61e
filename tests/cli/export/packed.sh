# a copy of the trace of a killed program holds all of it, in one closed file, and exports the same
. "$TARE_SRC/tests/cli/report/program.bash"
program
(record kill) 2>/dev/null
tare export app.tare -f tare -o copy.tare >said || exit
mkdir alone && mv copy.tare alone
for t in app.tare alone/copy.tare; do
    tare report --gross --flat --json $t >report.json || exit
    python3 -c 'import json; print(sorted((r["name"], r["count"]) for r in json.load(open("report.json"))["tree"]))'
    tare export $t -f chrome -o - 2>/dev/null | grep -c '"ph":"B"'
done
