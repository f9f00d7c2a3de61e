#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh - the wheels of `make dist` where users put them: a venv, a read-only prefix used by nobody, a minimal system with an old loader and no
# compiler, a Debian with CPython 3.14. The systems are made
# by mmdebstrap, once, in DIST_ROOTS.
set -u
. "$(dirname "$0")/../build/lib.sh"
cd "$TARE_SRC" || exit 1
: "${DIST_ROOTS:=$TARE_SRC/third_party/portable/roots}"
mkdir -p "$TMPDIR/at" && chmod 755 "$TMPDIR" "$TMPDIR/at"

cat >"$TMPDIR/use.py" <<'END'
import os, subprocess, sys, tempfile
import tare
from tare import _command
os.chdir(tempfile.mkdtemp())
tare.start("x.tare")
with tare.scope("step"):
    sum(range(1000))
tare.stop()
assert "step" in _command.call("report", "x.tare")
# Started from outside: only the one libtare of the process does that, no second copy in the extension.
subprocess.run([sys.executable, "-c", "import tare\nassert tare.recording()"], env={**os.environ, "TARE_TRACE": "y.tare"}, check=True)
with tare.functions() as seen:
    sorted(range(1000))
_command.call("synth", "mlp", "-o", "m.onnx")
assert "parameters" in _command.call("inspect", "m.onnx", "--json")
assert _command.path().startswith(os.path.dirname(tare.__file__)), _command.path()
print("used", "%d.%d" % sys.version_info[:2])
END
chmod 644 "$TMPDIR/use.py"

# Nothing but the basic folders on PATH, and no compiler: what is missing must not be found by luck.
bare() { env -i HOME="$TMPDIR/at" PATH="$TMPDIR/tools" LC_ALL=C.UTF-8 "$@"; }
mkdir "$TMPDIR/tools" && for t in sh sleep true; do ln -s "$(command -v $t)" "$TMPDIR/tools/$t"; done

wheel_of() { for w in dist/tare-*-"$1"-"$1"-manylinux_2_17_x86_64.*.whl; do [ ! -f "$w" ] || echo "$w"; done; }
in_venv() # in_venv PYTHON WHEEL
{
    rm -rf "$TMPDIR/at/venv" && "$1" -m venv "$TMPDIR/at/venv" && "$TMPDIR/at/venv/bin/pip" install -q --no-index --no-deps "$2" || return 1
    bare "$TMPDIR/at/venv/bin/python" "$TMPDIR/use.py" && bare "$TMPDIR/at/venv/bin/tare" version --json
}
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups env -i HOME=/nonexistent PATH=/usr/bin:/bin "$@"; }
read_only() # read_only PYTHON WHEEL: as nobody, in a prefix that nobody may write
{
    rm -rf "$TMPDIR/at/prefix" && "$TMPDIR/at/venv/bin/pip" install -q --no-index --no-deps --no-compile --target "$TMPDIR/at/prefix" "$2" &&
        chmod -R a+rX,a-w "$TMPDIR/at/prefix" && as_nobody env PYTHONPATH="$TMPDIR/at/prefix" "$1" "$TMPDIR/use.py"
}
needs_at_most() # needs_at_most WHEEL: no symbol of a glibc after 2.17 in any of its files
{
    rm -rf "$TMPDIR/open" && mkdir "$TMPDIR/open" && (cd "$TMPDIR/open" && python3 -m zipfile -e "$TARE_SRC/$1" .) || return 1
    find "$TMPDIR/open/tare" -type f \( -name '*.so*' -o -name tare \) -exec objdump -T {} + | grep -o 'GLIBC_[0-9.]*' | sort -uV >"$TMPDIR/wants"
    # What is neither Python's, ours nor optional must come from a version of glibc: others are not in all of them.
    find "$TMPDIR/open/tare" -type f \( -name '*.so*' -o -name tare \) -exec nm -D --undefined-only {} + | awk '$1 == "U" && $2 !~ /@|^_?Py|^tare_/' >"$TMPDIR/loose"
    [ ! -s "$TMPDIR/loose" ] || { cat "$TMPDIR/loose"; return 1; }
    grep -q GLIBC_2 "$TMPDIR/wants" && [ "$(tail -n 1 "$TMPDIR/wants")" = "$(printf '%s\nGLIBC_2.17\n' "$(tail -n 1 "$TMPDIR/wants")" | sort -V | head -n 1)" ]
}
found=0
for minor in 9 10 11 12 13 14; do
    wheel=$(wheel_of cp3$minor)
    [ -n "$wheel" ] || { skip "the wheel of CPython 3.$minor" "not in dist/ (make dist)"; continue; }
    found=$((found + 1))
    check "3.$minor: no symbol of a glibc newer than 2.17" needs_at_most "$wheel"
    python=$(for p in "$HOME"/.pyenv/versions/3.$minor.*/bin/python /usr/bin/python3.$minor; do [ ! -x "$p" ] || echo "$p"; done | head -n 1)
    [ -n "$python" ] || { skip "3.$minor: used in a venv" "no CPython 3.$minor here"; continue; }
    check "3.$minor: used in a venv, without a compiler" in_venv "$python" "$wheel"
    open=$(for p in /usr/bin/python3.$minor "$python"; do as_nobody "$p" -c '' 2>/dev/null && echo "$p"; done | head -n 1)
    if [ -n "$open" ]; then
        check "3.$minor: used by nobody in a read-only prefix" read_only "$open" "$wheel"
    else
        skip "3.$minor: used by nobody in a read-only prefix" "not root, or its interpreter is not open to others"
    fi
done
[ $found -gt 0 ] || finish

# root NAME SUITE PACKAGES [KEYRING]: a minimal system, made once, from where mmdebstrap finds that suite
root()
{
    roots=$DIST_ROOTS
    [ ! -x "$roots/$1/bin/sh" ] || return 0
    mkdir -p "$roots" && timeout 900 mmdebstrap --aptopt='Acquire::Check-Valid-Until "false"' --variant=minbase --include="$3" ${4:+--keyring="$4"} "$2" "$roots/$1"
}
within() # within NAME COMMAND..: with a /proc of its own, which goes with it; processes are those of the machine, as some tests want to be told of them
{
    system=$1 && shift
    unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$roots/$system" env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}
in_root() # in_root NAME PYTHON WHEEL: unpacked by hand, since a minimal system has no pip
{
    at=$roots/$1/opt/tare-trial
    rm -rf "$at" && mkdir -p "$at" && (cd "$at" && python3 -m zipfile -e "$TARE_SRC/$3" .) && chmod 755 "$at/tare/_bin/tare" || return 1
    cp "$TMPDIR/use.py" "$at/use.py" && printf 'cd /opt/tare-trial && tare/_bin/tare version --json && tare/_bin/tare synth mlp -o m.onnx && tare/_bin/tare inspect m.onnx' >"$at/command.sh"
    printf '\n[ -z "%s" ] || exec env PYTHONPATH=/opt/tare-trial %s /opt/tare-trial/use.py\n' "$2" "$2" >>"$at/command.sh"
    within "$1" /bin/sh /opt/tare-trial/command.sh
}
matrix() # matrix NAME PYTHON WHEEL: the tests that need Python alone, in there
{
    in_root "$1" "$2" "$3" || return 1
    cp tests/python/matrix_*.py tests/python/functions_*.py "$roots/$1/opt/tare-trial/"
    printf 'cd /opt/tare-trial || exit 1\nfor t in bench decorator functions lines monitor performance scope text; do env PYTHONPATH=/opt/tare-trial %s matrix_$t.py || exit 1; done\n' \
        "$2" >"$roots/$1/opt/tare-trial/matrix.sh"
    within "$1" /bin/sh /opt/tare-trial/matrix.sh
}
try() # try WHAT NAME SUITE PYTHON TAG PACKAGES [KEYRING [HOW]]
{
    what=$1
    wheel=$(wheel_of "$5")
    [ -n "$wheel" ] || { skip "$what" "no wheel of $5 in dist/"; return; }
    if [ "$(id -u)" != 0 ] || ! command -v unshare >/dev/null; then skip "$what" "not root"; return; fi
    [ -z "${7:-}" ] || [ -f "$7" ] || { skip "$what" "no $7 (apt install ubuntu-keyring)"; return; }
    if ! { [ -x "$DIST_ROOTS/$2/bin/sh" ] || command -v mmdebstrap >/dev/null; } || ! root "$2" "$3" "$6" "${7:-}" >"$TMPDIR/root.log" 2>&1; then
        skip "$what" "mmdebstrap could not make $3 here"
        return
    fi
    check "$what" "${8:-in_root}" "$2" "$4" "$wheel"
}
try "the command runs on Ubuntu 18.04, glibc 2.27" bionic bionic "" cp39 libc6 /usr/share/keyrings/ubuntu-archive-keyring.gpg
try "used on Debian 11, CPython 3.9, glibc 2.31" bullseye bullseye python3.9 cp39 python3
try "the matrix on Debian testing, CPython 3.14" testing testing python3.14 cp314 python3.14 "" matrix
finish
