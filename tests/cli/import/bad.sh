# bad input is exit 2 with the file and the cause; nothing is kept
cp "$TARE_SRC/fuzz/corpus/ort_profile/quotes-1.20.json" p.json
echo '{"not": "a profile"}' >other.json
mkdir dir
for file in missing.json other.json dir; do tare import --ort-profile $file; echo "exit $?"; done
tare import; echo "exit $?"
tare import --ort-profile p.json --skip 9; echo "exit $?"
tare import --ort-profile p.json --model missing.onnx; echo "exit $?"
tare import --ort-profile p.json --model other.json; echo "exit $?"
ls
