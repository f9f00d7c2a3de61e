#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh - compile the fake runtime into a folder and print its path: ort=$("$TARE_SRC"/tests/fake_ort/build.sh .)
# usage: tests/fake_ort/build.sh [FOLDER]    (default: $TMPDIR)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=${1:-${TMPDIR:-/tmp}}/libonnxruntime.so.1.99.0
"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -shared -pthread "$here"/fake_ort.c "$here"/fake_model.c -o "$to"
echo "$to"
