#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh - `make install` into a staging folder; a program is built against it with pkg-config alone; `make uninstall`
# leaves nothing behind.
set -u
. "$(dirname "$0")/lib.sh"
cd "$TARE_SRC" || exit 1
root=$TMPDIR/root
pc=$root/opt/tare/lib/pkgconfig

staged() { env PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$pc" pkg-config "$@" tare; }
quiet_make() { make --no-print-directory DESTDIR="$root" PREFIX=/opt/tare "$@"; }
with_pkg_config() # with_pkg_config OUTPUT
{
    # shellcheck disable=SC2046
    "$CC" -Wall -Werror tests/build/user.c $(staged --cflags --libs) -o "$1"
}
without_root() { grep -q ^prefix=/opt/tare$ "$pc/tare.pc" && ! grep "$root" "$pc/tare.pc"; }
says() # says EXPECTED COMMAND...
{
    want=$1
    shift
    out=$("$@" 2>&1) || { echo "$out"; return 1; }
    [ "$out" = "$want" ] || { echo "said: $out"; return 1; }
}
nothing_left() { left=$(find "$root" ! -type d) && [ -z "$left" ] || { echo "$left"; return 1; }; }

version=$(sed -n 's/^#define TARE_VERSION "\(.*\)"/\1/p' include/tare/tare.h)
check "make install" quiet_make install
for f in bin/tare include/tare/tare.h include/tare/inline.h lib/libtare.a "lib/libtare.so.$version" lib/pkgconfig/tare.pc \
    lib/systemd/system/tare-serve.service lib/systemd/system/tare-serve.socket; do
    check "$f is there" test -f "$root/opt/tare/$f"
done
check "libtare.so leads to the soname" says libtare.so.0 readlink "$root/opt/tare/lib/libtare.so"
check "pkg-config knows the version" says "$version" staged --modversion
check "no staging path in tare.pc" without_root
check "the unit starts what is installed" grep -q "^ExecStart=/opt/tare/bin/tare serve " "$root/opt/tare/lib/systemd/system/tare-serve.service"
check "a program builds with pkg-config" with_pkg_config "$TMPDIR/user"
check "and runs" says "fine out of memory" env LD_LIBRARY_PATH="$root/opt/tare/lib" "$TMPDIR/user"
check "the installed command runs" "$root/opt/tare/bin/tare" version
check "installing again changes nothing" quiet_make install
check "make uninstall" quiet_make uninstall
# Another LIBDIR: the command is told of it, and looks there. (Compiled aside: the build is not made anew for it.)
told_libdir() { quiet_make -n LIBDIR=/opt/tare/lib/multi/arch build/obj/src/probe/gpu_record.o | grep -q "TARE_LIBDIR='\"../lib/multi/arch\"'"; }
finds_library() # finds_library LIBDIR-FROM-BIN FOLDER
{
    mkdir -p "$TMPDIR/moved/bin" "$TMPDIR/moved/$2" && : >"$TMPDIR/moved/$2/libtare-gpu.so"
    printf '#include <stdio.h>\n#include "probe/gpu_record.h"\nint main(void)\n{\n    char at[PATH_MAX];\n    return !gpu_record_library(at) || puts(at) < 0;\n}\n' \
        >"$TMPDIR/finds.c"
    "$CC" -D_GNU_SOURCE -DTARE_LIBDIR="\"$1\"" -Isrc -Iinclude "$TMPDIR/finds.c" src/probe/gpu_record.c src/core/error.c \
        -ldl -o "$TMPDIR/moved/bin/finds" || return 1
    says "$TMPDIR/moved/bin/$1/libtare-gpu.so" "$TMPDIR/moved/bin/finds"
}
check "another LIBDIR is compiled in" told_libdir
check "and looked into" finds_library ../lib/multi/arch lib/multi/arch
check "nothing is left" nothing_left
finish
