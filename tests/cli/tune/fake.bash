# SPDX-License-Identifier: MIT
# A runtime whose cost of every configuration is known: a run sleeps 4 ms, times what the model's `times` lines say.
export XDG_CACHE_HOME="$PWD/cache"
ort=$("$TARE_SRC"/tests/fake_ort/build.sh "$PWD")
model() { # NAME, then lines
    local to=$1; shift
    { echo 'fake-ort-model 1'; echo 'input x float32 batch,8'; echo 'output y float32 batch,4'; echo 'sleep_us 4000'; printf '%s\n' "$@"; } >"$to"
}
tuned() { tare tune "$@" --ort "$ort" 2>err; echo "exit $?"; }
field() { python3 -c 'import glob, json, sys; d = json.load(open(sorted(glob.glob("tare-results/tune_*.json"))[-1])); print(eval(sys.argv[1]))' "$1"; }
