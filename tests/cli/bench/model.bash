# SPDX-License-Identifier: MIT
# A small real model and the project's own ONNX Runtime.
export VIRTUAL_ENV="$TARE_SRC/.venv" XDG_CACHE_HOME="$PWD/cache"
mlp() { tare synth mlp --sizes 32,64,8 -o mlp.onnx >/dev/null; }
