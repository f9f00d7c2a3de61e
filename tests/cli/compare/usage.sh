# each with its cause and exit 2
touch here.onnx other.onnx
try() { tare compare "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try
try a.json b.json
try --ab
try --ab true
try --ab true true true
try --ab here.onnx
try --ab here.onnx true
try --ab here.onnx missing.onnx
try --ab true no-such-command-here
try --ab true "sh -c 'left open"
try --ab true 'ls | wc'
try --ab 'find . -exec true {} \;' 'ls x;'
try --ab true ''
try --ab true true --batch 4
try --ab here.onnx other.onnx --shell
try --ab here.onnx --a '--threads 1,2' --b '--threads 1'
try --ab here.onnx --a '--threads none' --b '--threads 1'
try --ab here.onnx --a '--budget 3s' --b ''
try --ab here.onnx other.onnx --ort a --ort b --ort c
try --ab true true --min-effect lots
try --ab true true --min-effect 200%
try --ab true true --build make
try --ab-rev main -- true
try --ab-rev main..HEAD
try --ab --ab-rev main..HEAD -- true
tare __ab-worker 2>&1 | head -n 1
