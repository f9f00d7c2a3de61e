# a runtime that is loaded writes nothing beside what was asked for: no identity, no database, no session file
. "$TARE_SRC/tests/cli/inspect/models.bash"
mkdir home tmp
export HOME="$PWD/home" TMPDIR="$PWD/tmp" XDG_CACHE_HOME="$PWD/home/.cache"
mlp
tare inspect mlp.onnx --optimized >/dev/null
tare inspect mlp.onnx mlp.onnx --diverge >/dev/null
tare bench mlp.onnx --layers --no-save --budget 200ms --warmup 1 >/dev/null 2>&1
find home tmp -type f ! -path 'home/.cache/tare/*'
find tmp -mindepth 1
