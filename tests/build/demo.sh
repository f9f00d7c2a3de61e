#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh - what `make demo` shows once everything is built; the example's answer must not depend on how it is run.
set -u
. "$(dirname "$0")/lib.sh"
cd "$TARE_SRC" || exit 1
out=$BUILT/demo
run() { "$out/transformer" --batches 3 "$@"; }
says_next() { TARE_DEMO_BUDGET=0.3 tools/demo "$BUILT" >"$TMPDIR/demo.log" 2>&1 && grep -q '^What to look at next:$' "$TMPDIR/demo.log" || { cat "$TMPDIR/demo.log"; return 1; }; }
refuses() # refuses ARGUMENT...: exit status 2 and a message
{
    said=$(run "$@" 2>&1 >/dev/null)
    [ $? = 2 ] && [ -n "$said" ]
}
same() # same COMMAND...: the answer of the plain run
{
    answer=$("$@") && [ "$answer" = "$plain" ] || { echo "$answer, not $plain"; return 1; }
}

announces() { tools/demo --announce "$1" >"$TMPDIR/said" && grep -q '  1\. installs what is missing' "$TMPDIR/said" && grep -q "$2" "$TMPDIR/said"; }
check "demo says what it will do and how long" announces "$TMPDIR/nothing" 'builds tare: about [0-9]* s on [0-9]* processors'
check "demo with a build says that only changes are built" announces "$BUILT" 'builds what has changed'
check "demo runs and says what is next" says_next
check "the timeline is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$out/transformer.json"
check "its trace is kept" test -s "$out/transformer.tare"
plain=$(run)
check "recording changes no answer" same env TARE_TRACE="$TMPDIR/a.tare" "$out/transformer" --batches 3
check "threads change no answer" same run --threads 3
check "threads and recording change no answer" same env TARE_TRACE="$TMPDIR/b.tare" "$out/transformer" --batches 3 --threads 2
check "transposed keys change no answer" same run --transpose-keys
for wrong in "--seq 0" "--batches x" "--threads" "--no-such" "word"; do
    # shellcheck disable=SC2086
    check "refuses $wrong" refuses $wrong
done
check "helps" sh -c '"$1" -h | grep -q usage' sh "$out/transformer"
finish
