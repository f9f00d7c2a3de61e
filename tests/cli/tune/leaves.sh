# all configurations cost the same: leave it, exit 0; precision is not touched without a limit, and it says so
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx
tuned m.onnx --only batch,execution,arena,precision --batch 1 --threads 1 --budget 4s >text
tail -n 1 text
grep -c '^answer  *leave it as it is' text
grep -o 'not touched: precision' text
field 'd["recommendation"]["case"]'
# the shortest run: the work of a run stays
tuned m.onnx --only batch,execution,arena,precision --threads 1 --objective latency --budget 3s >text
grep -o 'not touched: batch: .*' text
