# what is no model is named for what it is, and nothing is kept
. "$TARE_SRC/tests/cli/bench/model.bash"
printf '' >empty.onnx; head -c 5000 /dev/urandom >random.onnx; echo '<html>' >page.onnx; mlp; head -c 900 mlp.onnx >cut.onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >lfs.onnx
for f in empty random page cut lfs; do tare bench $f.onnx; echo "$f $?"; done
ls tare-results 2>/dev/null
true
