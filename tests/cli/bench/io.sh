# inputs and outputs in host memory or kept on the device: a case each, in name, parameters and CSV; only a device has the second
ort=$("$TARE_SRC"/tests/fake_ort/build.sh .)
cat >m.onnx <<'M'
fake-ort-model 1
input x float32 batch,4
output y float32 batch,2
M
export FAKE_ORT_CUDA=1
cases() { python3 -c 'import json; [print(c["name"], c["params"].get("io"), c["nan_outputs"]) for c in json.load(open("out.json"))["cases"]]'; }
bench() { tare bench m.onnx --ort "$ort" --budget 20ms --warmup 2 --no-save "$@"; }
bench --provider cpu,cuda --io host,gpu --batch 1,2 --validate-accuracy --json >out.json 2>said; echo $?; cases
bench --provider cuda --json >out.json 2>said; echo $?; cases
bench --provider cuda --io gpu --csv - 2>said | grep -o "provider,io,precision\|cuda,gpu"
bench --io gpu; echo $?
bench --provider cuda --io gpu,disk; echo $?
tare compare --ab m.onnx m.onnx --ort "$ort" --provider cuda --a=--io=host --b=--io=gpu --budget 50ms --json --no-save 2>said >out.json; echo $?
python3 -c 'import json; d = json.load(open("out.json")); print(d["base"]["options"].get("io"), d["new"]["options"].get("io"))'
