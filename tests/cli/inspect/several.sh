# side by side with ratios; sums of the graph as the runtime makes it beside those of the file
. "$TARE_SRC/tests/cli/inspect/models.bash"
text -o fp32.onnx; text --dtype int8 -o int8.onnx
tare inspect fp32.onnx int8.onnx --seq 16
