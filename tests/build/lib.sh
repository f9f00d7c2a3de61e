# SPDX-License-Identifier: MIT
# lib.sh - sourced by the scripts beside it: TAP by hand. Not a test itself.
n=0
failed=0
: "${TARE_SRC:=$(cd "$(dirname "$0")/../.." && pwd)}" "${BUILT:=$TARE_SRC/build}" "${CC:=gcc}"
if [ -z "${TMPDIR:-}" ]; then
    TMPDIR=$(mktemp -d)
    trap 'rm -rf "$TMPDIR"' EXIT
fi

check() # check NAME COMMAND...: the command must succeed; its output is shown when it does not
{
    name=$1
    shift
    n=$((n + 1))
    if "$@" >"$TMPDIR/log" 2>&1; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        echo "# $*"
        sed 's/^/# /' "$TMPDIR/log"
        failed=$((failed + 1))
    fi
}

skip() # skip NAME WHY
{
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

finish()
{
    echo "1..$n"
    [ $failed = 0 ]
    exit
}
