# one sentence with what to type; nothing is written
try() { tare init "$@" 2>&1; echo "exit ${PIPESTATUS[0]}"; }
try; try workflow; try ci; try ci app; try ci /m.onnx; try ci m.onnx --build make; try ci --for travis m.onnx
try ci -- ./app '${{ x }}'; try ci -- ./app "$(printf 'a\nb')"; try ci -o no/such/file m.onnx
ls -A
