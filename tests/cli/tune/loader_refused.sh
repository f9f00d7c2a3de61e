# what cannot be meant is told before Python is started; what is no answer is told, and nothing is kept
. "$TARE_SRC/tests/cli/tune/fake_python.bash"
refused() { tare tune "$@"; echo "exit $?"; } 2>&1
answer
refused py:train.py
refused py:train.py:make_loader --step train.py:step
refused py:train.py:make_loader --threads 2
refused py:train.py:make_loader --accuracy 'agreement>=0.99' --inputs x.npz
refused py:train.py:make_loader --inputs x.npz
refused py:train.py:make_loader --objective memory
refused py:train.py:make_loader --only arena
refused m.onnx --step py:train.py:step
refused m.onnx --only workers
for bad in best=7 bound='"much"' tried='[{"name": ""}]' proof='{"gain": [2, 3, 1], "pairs": 3, "uses_more_cpu": true, "verdict": "confirmed"}' left='[7]' interrupted='"no"' measurements=-1; do
    answer "$bad"
    refused py:train.py:make_loader
done
printf '{"bound": ' >answer; refused py:train.py:make_loader
printf '' >answer; refused py:train.py:make_loader
touch dies; refused py:train.py:make_loader
TARE_PYTHON=/no/such/python refused py:train.py:make_loader
ls tare-results 2>/dev/null | grep -c tune_
