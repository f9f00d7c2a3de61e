# one model: header, totals, layers, sums, findings; two of its numbers by hand: 32*64 + 64*8 MACs, and as many
# parameters plus 64 + 8 biases
. "$TARE_SRC/tests/cli/inspect/models.bash"
mlp
tare inspect mlp.onnx --batch 4 | version
