# --depth and --min-share leave out and say so; --thread reports one thread; --sort orders
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare report --depth 1 app.tare | grep -c 'step' ; tare report --depth 1 app.tare | grep 'more rows'
tare report --min-share 99.9 app.tare | grep -c 'fib'
tid=$(tare report --json app.tare | python3 -c 'import json,sys; print([t["tid"] for t in json.load(sys.stdin)["trace"]["threads"]][1])')
tare report --thread "$tid" --json app.tare | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["tree"]))'
tare report --flat --sort name --json app.tare | python3 -c 'import json,sys
n = [r["name"] for r in json.load(sys.stdin)["tree"]]; print(n == sorted(n))'
tare report --gross app.tare | grep -o 'still in the times above'
