# What is typed wrong is told with its cause and what to type instead; every one of them exits with 2.
says() { tare "$@" </dev/null 2>&1 | grep -v '^try: '; rc=${PIPESTATUS[0]}; [ "$rc" = 2 ] || echo "exit $rc"; }
echo 'print(1)' >words.py; printf '#!/bin/sh\n' >prog; echo '{broken' >bad.json; echo '{}' >empty.json; echo hello >t.txt; mkdir folder
tare bench --max-runs 2 --budget 10ms --no-history -- true >/dev/null 2>&1
mv tare-results/bench_true_*.json one.json
says history lsst
says history lst
says history show
says bench words.py
says bench "python x.py"
says bench ./prog
says bench ftp://localhost:1/x
says bench http://localhost:1/x --body nosuch.json
says bench http://user:pw@localhost/x
says bench http://localhost:1/x --rate 5 --concurrency 4
says bench http://localhost:1/x --batch 4
says bench --concurrency 1,2 -- true
says bench --min-runs 10 --max-runs 5 -- true
says bench m.onnx --batch 1-8
says bench m.onnx --threads 1000000
says bench m.onnx --target 'p95<=100'
says bench m.onnx --target 'memory.peak<=100'
says bench m.onnx --target 'p95<=100xs'
says bench -- words.py
says compare one.json
says compare --ab words.py words.py | sed 's,command: [a-z]* (,command: SIDE (,'
says report bad.json
says report empty.json
says report folder
says import nosuch.json
says import t.txt
tare run words.py 2>&1; echo $?
