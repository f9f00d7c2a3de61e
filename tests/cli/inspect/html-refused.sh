# pages are of what models cost, not of where two of them differ
tare inspect --html missing/out.html missing.onnx 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"
tare inspect --diverge --html out.html a.onnx b.onnx 2>&1 | head -n 1
