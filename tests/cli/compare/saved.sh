# three runs a side, a history, or nothing to judge by: regressed, undecided, unverified; what alone may fail
. "$TARE_SRC/tests/cli/compare/saved.bash"
saved_runs
try() { tare compare "$@" 2>&1; echo "exit $?"; }
three="--base a1.json --base a2.json --base a3.json --new b1.json --new b2.json --new b3.json"
try $three
try $three --fail-on 'latency.p95>5%' | tail -n 4
try $three --fail-on 'latency.p50>30%' | grep -e '^latency.p50' -e exit
try a1.json b1.json
try a1.json b1.json --strict | tail -n 1
mkdir base new && cp a?.json base/ && cp b?.json new/ && echo '{"schema": "tare.comparison/1"}' >new/other.json
try base new | tail -n 3
tare history import h*.json >/dev/null 2>&1
try a1.json b1.json | grep -e '^latency.p50' -e verdict -e exit
try a1.json b1.json --no-history | tail -n 3
try a1.json a2.json | grep -e '^latency.p50' -e verdict -e exit
tare history baseline main 01KA0000000000000000000036 2>/dev/null
try @main b1.json | grep -e '^base' -e verdict -e exit
try baseline:main b1.json | tail -n 1
try 01KA0000000000000000000037 @latest | grep -e '^new' -e exit
ls tare-results
