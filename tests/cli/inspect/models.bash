# SPDX-License-Identifier: MIT
# Small models of known arithmetic, and the project's own ONNX Runtime.
export VIRTUAL_ENV="$TARE_SRC/.venv" XDG_CACHE_HOME="$PWD/cache"
mlp() { tare synth mlp --sizes 32,64,8 -o mlp.onnx >/dev/null; }
text() { tare synth minilm-l6 --layers 1 --hidden 32 --heads 2 --ffn 64 --vocab 100 --positions 32 "$@" >/dev/null; }
version() { sed 's/made by tare [^,]*,/made by tare X,/'; }
# Relu reads what it makes: a graph of one node, written by hand.
cyclic() { printf '\x08\x08\x3a\x13\x0a\x0c\x0a\x01b\x12\x01b\x22\x04Relu\x62\x03\x0a\x01b\x42\x04\x0a\x00\x10\x11' >"$1"; }
