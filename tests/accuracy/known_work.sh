#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Known work must be measured within a stated error, whatever mode and clock it is recorded with.
set -eu
cd "$TMPDIR"
"$CC" -std=gnu11 -O2 -D_GNU_SOURCE -I"$TARE_SRC/include" "$TARE_SRC/tests/accuracy/known_work.c" "$BUILT/libtare.a" -pthread -o known_work
# A machine that takes the processor away between the program's clock and ours can spoil one attempt, not three in a row.
run() { # NAME [VAR=VALUE...]
    local name=$1 attempt
    shift
    for attempt in 1 2 3; do
        rm -f "$name".tare*
        env "$@" TARE_TRACE="$name.tare" ./known_work >"$name.txt"
        "$TARE" report --json "$name.tare" >"$name.json"
        "$TARE_PYTHON" "$TARE_SRC/tests/accuracy/check_known.py" "$name.json" "$name.txt" "$name" >"$name.tap"
        grep -q '^not ok' "$name.tap" || break
        [ "$attempt" = 3 ] || sed 's/^/# attempt '"$attempt"': /' "$name.tap" | grep -A1 'not ok' || true
    done
    cat "$name.tap"
}
run default TARE_MODE=both
run aggregate TARE_MODE=aggregate
run events TARE_MODE=events
run fast-clock TARE_CLOCK=fast
run fallback-clock TARE_CLOCK_FALLBACK=1
run unweighed TARE_WEIGH=off
