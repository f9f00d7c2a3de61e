# wrong words, wrong numbers, wrong places: one sentence each, and nothing is written
try() { tare synth "$@" 2>&1 | grep -v '^try:'; echo "exit ${PIPESTATUS[0]}"; }
try; try minlm-l6 -o x; try frobnicate -o x; try minilm-l6; try --list mlp; try mlp mlp -o x
try resnet50 -o x --hidden 64; try mlp -o x --layers 3; try bert-base -o x --kv-cache; try vit-b16 -o x --head none
try minilm-l6 -o x --sizes 3,4; try deberta-v3-base -o x --positions 5; try bert-base -o x --classes 5
try minilm-l6 -o x --hidden 100; try minilm-l6 -o x --layers 0; try minilm-l6 -o x --hidden 65536
try minilm-l6 -o x --opset 12; try minilm-l6 -o x --opset 22; try minilm-l6 -o x --dtype fp8
try vit-b16 -o x --image 100; try mlp -o x --sizes 3; try mlp -o x --sizes 3,; try mlp -o x --sizes 3,x; try mlp -o x --sizes ''
mkdir folder
try mlp -o folder; try mlp -o no/such/x; try mlp -o ''; try mlp -o - --json; try mlp -o - --external-data
mkfifo pipe; try mlp -o pipe --external-data
ls -A
