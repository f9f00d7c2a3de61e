# no timeline in a trace without events: refused with the way out; the tree formats still work
. "$TARE_SRC/tests/cli/report/program.bash"
program && TARE_MODE=aggregate record
tare export app.tare -f chrome -o out; echo "exit $?"
tare export app.tare -f perfetto -o out; echo "exit $?"
tare export app.tare -f speedscope -o scope.json && tare export app.tare -f folded -o - | grep -c 'worker;step;load'
python3 -c 'import json; p = json.load(open("scope.json"))["profiles"]; print(len(p), p[0]["type"], sum(p[0]["weights"]) == p[0]["endValue"])'
ls out
