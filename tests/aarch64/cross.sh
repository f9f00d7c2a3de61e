#!/bin/sh
# SPDX-License-Identifier: MIT
# cross.sh - the libraries for aarch64: cross-built, run by QEMU; what they record is read by this machine's tare and is known.
# What emulation shows and what not: docs/aarch64.md.
set -u
. "$(dirname "$0")/../build/lib.sh"
cd "$TARE_SRC" || exit 1
cross=aarch64-linux-gnu-gcc
sysroot=/usr/aarch64-linux-gnu
arm=build/aarch64
for program in $cross qemu-aarch64-static; do
    command -v $program >/dev/null || { echo "1..0 # SKIP no $program (tools/deps all)"; exit 0; }
done
tare=${TARE:-$BUILT/tare}
python=${TARE_PYTHON:-python3}

emulated() { timeout 120 qemu-aarch64-static -L $sysroot "$@"; }
compiled() { $cross -O1 -Iinclude "$1" $arm/libtare.a -pthread -lm -o "$TMPDIR/$2" -DPAUSES; }
says() # says TRACE EXPRESSION [OPTION...]: true of the report d, of which t is {path: (kind, count, sum)}
{
    trace=$1 expression=$2
    shift 2
    "$tare" report --json "$@" "$trace" >"$TMPDIR/report.json" && "$python" - "$TMPDIR/report.json" "$expression" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
t = {}
def walk(nodes, path):
    for n in nodes:
        here = path + "/" + n["name"]
        t[here] = (n["kind"], n["count"], n.get("sum"))
        walk(n["children"], here)
walk(d.get("tree", []), "")
assert eval(sys.argv[2]), (sys.argv[2], t or d)
PY
}
records() { TARE_TRACE="$TMPDIR/$2.tare" emulated "$TMPDIR/$1" >/dev/null; }
dies() # the live file of a process that is killed
{
    TARE_TRACE="$TMPDIR/killed.tare" emulated "$TMPDIR/program" kill >/dev/null 2>&1
    [ $? -gt 128 ] && ls "$TMPDIR"/killed.tare.live-* >/dev/null
}
counts_memory()
{
    TARE_MEMORY_EVERY=1 TARE_MEMORY_TRACE="$TMPDIR/memory.tare" emulated -E LD_PRELOAD="$PWD/$arm/libtare-agent.so" "$TMPDIR/hold"
}

check "the libraries are cross-built" make -s -j2 O=$arm CC=$cross PKG_CONFIG=false NODE= lib
check "the C interface is the same as on x86-64" env CC=$cross ABI_RUN="qemu-aarch64-static -L $sysroot" tools/check-abi $arm
check "a program is built" compiled tests/golden/trace/program.c program
check "it runs and records" records program plain
check "threads, counters and marks are there" says "$TMPDIR/plain.tare" \
    "t['/main work/leaf'] == ('scope', 12, None) and t['/worker/leaf'] == ('scope', 100, None) and t['/worker/leaf/tokens'] == ('counter', 100, 300) and t['/main work/note'][1] == 1"
check "a call that waits is one call" says "$TMPDIR/plain.tare" "t['/main work/coroutine'] == ('scope', 1, None)"
check "nothing is lost or damaged" says "$TMPDIR/plain.tare" "not d['loss']['damaged_chunks'] and not d['loss']['dropped'] and d['trace']['events'] >= 340"
check "the counter of the processor is used" says "$TMPDIR/plain.tare" "all(p['tsc'] for p in d['trace']['processes'])"
check "killed, it leaves its live file" dies
check "which is read" says "$TMPDIR/killed.tare" "t['/worker/leaf'] == ('scope', 100, None) and t['/main work/leaf'] == ('scope', 12, None)"
check "the example with events alone" compiled examples/hello.c hello
check "it runs" env TARE_MODE=events TARE_TRACE="$TMPDIR/hello.tare" qemu-aarch64-static -L $sysroot "$TMPDIR/hello"
check "each of its 200,000 calls is there" says "$TMPDIR/hello.tare" "d['trace']['events'] >= 600000"
cat >"$TMPDIR/hold.c" <<'C'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *kept = malloc(700001), *gone = malloc(300001);
    memset(kept, 1, 700001);
    memset(gone, 1, 300001);
    free(gone);
    return kept[5] - 1;
}
C
check "a program that allocates" $cross -O0 "$TMPDIR/hold.c" -o "$TMPDIR/hold"
check "the memory agent leaves its answer alone" counts_memory
check "and counts every byte" says "$TMPDIR/memory.tare" \
    "d['processes'][0]['allocated']['bytes'] == 1000002 and d['processes'][0]['at_end']['bytes'] == 700001" --memory
finish
