# nothing is kept unless -o says where; a kept document is reported again and converts
. "$TARE_SRC/tests/cli/inspect/models.bash"
mlp
tare inspect mlp.onnx >first.txt; ls
tare inspect mlp.onnx -o kept.json >/dev/null
tare report kept.json | sed '/^dimensions/d' >again.txt; sed -i '/^dimensions/d' first.txt
sed -i 's/, alive [^)]*)/)/' first.txt   # tensors alive at the peak are not in the document
diff first.txt again.txt && echo "the same again"
tare report kept.json -f layers | head -n 1 | cut -d, -f 1-5
tare report kept.json -f md | grep -c details
tare inspect mlp.onnx mlp.onnx --json | python3 -c 'import json, sys; print([d["kind"] for d in json.load(sys.stdin)])'
