# what cannot be compared, each with its cause: 2 for bad input, 3 for what does not compare
. "$TARE_SRC/tests/cli/compare/saved.bash"
saved_runs
try() { tare compare "$@" 2>&1 | head -n 3; echo "exit ${PIPESTATUS[0]}"; }
try
try a1.json
try a1.json b1.json a2.json
try --base a1.json
try --base a1.json --new b1.json b2.json
try old.onnx new.onnx
try a1.json missing.json
try a1.json @main
try gone.json missing.json
try a1.json nan.json | sed 's/column [0-9]*/column N/'
try a1.json negative.json
try a1.json newer.json
try a1.json empty.json
try a1.json inspect.json
try a1.json kind.json
try --base a1.json --new b1.json --new kind.json
try a1.json cpu.json
try a1.json load.json
try a1.json unit.json
try --base a1.json --base a1.json --new b1.json
mkdir none; try none b1.json
try a1.json b1.json --fail-on 'latency.p95<5%'
try a1.json b1.json --fail-on 'latency.p95>5ms'
try a1.json b1.json --fail-on 'throughputt>5%'
try a1.json b1.json --batch 4
try --ab --fail-on 'latency>5%' true true
try --ab --output-dir /proc/none true true
tare compare a1.json cpu.json --force 2>&1 | grep -e differs -e force -e verdict
tare compare a1.json runtime.json 2>&1 | grep -e differs -e verdict
tare compare a1.json names.json 2>&1 | grep -e only -e 'no case' -e verdict
tare compare a1.json a1.json 2>&1 | grep 'same run'
# a search holds what a bench measures, and many cases that a bench of one has not
tare compare tune.json b1.json 2>&1 | grep -e differs -e only -e verdict:
