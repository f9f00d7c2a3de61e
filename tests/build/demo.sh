#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh - what `make demo` shows once everything is built.
set -u
. "$(dirname "$0")/lib.sh"
cd "$TARE_SRC" || exit 1
if [ -f examples/transformer.c ]; then
    check "demo runs" tools/demo "$TARE_BUILD"
    check "the timeline is JSON" python3 -m json.tool "$TARE_BUILD/demo/transformer.json" /dev/null
    check "its trace is kept" test -s "$TARE_BUILD/demo/transformer.tare"
else
    skip "demo runs" "no examples/transformer.c yet"
fi
finish
