# options of traces, damaged documents, formats that do not fit: named, exit 2, nothing written
cp "$TARE_SRC/tests/cli/report/sweep.run.json" run.json
run=run.json
try() { tare report "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
head -c 3000 "$run" >cut.json
sed 's/"p50": {"value": [0-9]*/"p50": {"value": "x"/' "$run" >wrong.json
sed 's/tare.run\/1/tare.run\/2/' "$run" >newer.json
try --flat "$run"
try cut.json
try wrong.json
try newer.json
try "$run" missing.json
try --json --format csv "$run"
try --format cvs "$run"
try -o no/such/folder/x.csv -f csv "$run"
try -f csv -o out.csv "$run" cut.json
ls
