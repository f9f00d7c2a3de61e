#!/bin/sh
# SPDX-License-Identifier: MIT
# unit.sh - the command, the unit tests and the Python extension for aarch64: cross-built with Debian's packages for arm64, which mmdebstrap unpacks
# into DIST_ROOTS, once, and run by QEMU, which also runs what they start: by a private binfmt_misc of a user namespace.
# What emulation shows and what not: docs/aarch64.md.
set -u
. "$(dirname "$0")/../build/lib.sh"
cd "$TARE_SRC" || exit 1
root=${DIST_ROOTS:-$TARE_SRC/third_party/portable/roots}/arm64
cross=aarch64-linux-gnu-gcc
arm=build/aarch64-all
packages=libc6-dev,libstdc++6,libcmocka-dev,libjansson-dev,libyaml-dev,libzstd-dev,zlib1g-dev,libssl-dev,libsqlite3-dev,libcurl4-openssl-dev,libpq-dev,libdw-dev,libdw1,python3.11,libpython3.11-dev
for program in $cross qemu-aarch64-static; do
    command -v $program >/dev/null || { echo "1..0 # SKIP no $program (tools/deps all)"; exit 0; }
done

made_root() # its links lead into itself, wherever it lies
{
    [ "$(cat "$root/made" 2>/dev/null)" != "$packages" ] || return 0
    rm -rf "$root" && mkdir -p "$(dirname "$root")" || return 1
    timeout 900 mmdebstrap -q --variant=extract --architectures=arm64 --include="$packages" bookworm "$root" || return 1
    # QEMU looks into this folder first: what programs open must not be there.
    (cd "$root" && rm -rf bin sbin dev etc tmp var) || return 1
    find "$root" -type l -lname '/*' | while read -r l; do
        to=$root$(readlink "$l")
        [ ! -e "$to" ] || ln -sfnr "$to" "$l"
    done
    echo "$packages" >"$root/made"
}
built() # built TARGET...
{
    env PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig" \
        make --no-print-directory -s -j2 O=$arm CC=$cross CFLAGS="--sysroot=$root" LDFLAGS="--sysroot=$root" "$@"
}
if ! [ -f "$root/made" ] && ! { command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ]; }; then
    echo "1..0 # SKIP no mmdebstrap (tools/deps all), or not root"
    exit 0
fi
if ! made_root >"$TMPDIR/root.log" 2>&1; then
    skip "the unit tests" "Debian's packages for arm64 are not to be had: $(tail -n 1 "$TMPDIR/root.log")"
    finish
fi
# What starts a program for aarch64 starts QEMU, in a namespace of this script's own with the users of the machine; not more than so many processes, since
# one that starts itself by mistake would do so for ever.
magic=':tare-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'$(command -v qemu-aarch64-static)':F'
enter()
{
    mkfifo "$TMPDIR/there" "$TMPDIR/go"
    prlimit --nproc=4000 unshare --user --mount sh -c 'echo >"$2" && read -r _ <"$3" && mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
        printf %s "$1" >/proc/sys/fs/binfmt_misc/register && exec env AARCH64_INSIDE=1 "$4"' sh "$magic" "$TMPDIR/there" "$TMPDIR/go" "$0" &
    inside=$!
    read -r _ <"$TMPDIR/there" && echo '0 0 4294967295' >/proc/$inside/uid_map && echo '0 0 4294967295' >/proc/$inside/gid_map
    echo >"$TMPDIR/go"
    wait $inside
}
if [ -z "${AARCH64_INSIDE:-}" ]; then
    if unshare --user --mount --map-root-user mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null; then
        enter
        exit
    fi
    skip "the unit tests" "no binfmt_misc of a user namespace here (it came with Linux 6.7)"
    finish
fi

export QEMU_LD_PREFIX="$root" BUILT="$TARE_SRC/$arm" TARE="$TARE_SRC/$arm/tare"
emulated() { timeout "${LIMIT:-900}" "$@" </dev/null; }
tells_architecture() { emulated "$TARE" version --json | grep -q '"architecture": "aarch64"'; }
weighs() { emulated "$TARE" synth mlp -o "$TMPDIR/m.onnx" && emulated "$TARE" inspect "$TMPDIR/m.onnx" && emulated "$TARE" bench --budget 1s --no-save -- true; }
check "the command is cross-built" built $arm/tare
check "it says what it is" tells_architecture
check "it writes and reads a model, and weighs a command" weighs

# Not asked: what QEMU does in another way.
why_not()
{
    case $1 in
        test_pause) echo "QEMU has no ptrace" ;;
        test_file_facts) echo "QEMU refuses mincore" ;;
        test_py_wire | test_subject_command) echo "under QEMU posix_spawn() of what is not there succeeds: its vfork is a fork" ;;
        test_samples) echo "under QEMU MADV_WIPEONFORK does nothing" ;;
        test_top) echo "under QEMU a process has a thread more" ;;
        test_probe_process | test_between_runs | test_ab) echo "what QEMU itself costs is most of what is looked at" ;;
    esac
}
check "the unit tests are cross-built" built -k tests
for source in tests/unit/test_*.c; do
    t=$(basename "$source" .c)
    why=$(why_not "$t")
    if [ -n "$why" ]; then skip "$t" "$why"; else check "$t" emulated "$arm/tests/$t"; fi
done

# The extension: this interpreter is asked for its names by the Makefile, and then runs in here like any other program.
export PYTHONHOME="$root/usr"
python=$root/usr/bin/python3.11
check "the Python extension is cross-built" built MISSING=here PYTHON="$python" python
package=$TARE_SRC/$arm/python/cpython-311
# Its command is that for aarch64, too. Left out: what forks, which QEMU does in another way (above), and what asks for memory, which is QEMU's.
python_test() { emulated env PATH="$TARE_SRC/$arm:$PATH" PYTHONPATH="$package" "$python" -X dev tests/python/matrix_"$@"; }
check "matrix_text.py" python_test text.py
check "matrix_scope.py" python_test scope.py Blocks Functions Tasks Outside
finish
