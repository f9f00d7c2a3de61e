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
    lib/systemd/system/tare-serve.service lib/systemd/system/tare-serve.socket lib/cmake/tare/tare-config.cmake \
    lib/cmake/tare/tare-config-version.cmake share/man/man1/tare.1 share/man/man1/tare-bench.1 share/man/man1/tare-help.1 \
    share/bash-completion/completions/tare share/zsh/site-functions/_tare share/fish/vendor_completions.d/tare.fish; do
    check "$f is there" test -f "$root/opt/tare/$f"
done
check "libtare.so leads to the soname" says libtare.so.0 readlink "$root/opt/tare/lib/libtare.so"
check "pkg-config knows the version" says "$version" staged --modversion
check "no staging path in tare.pc" without_root
check "the unit starts what is installed" grep -q "^ExecStart=/opt/tare/bin/tare serve " "$root/opt/tare/lib/systemd/system/tare-serve.service"
check "a program builds with pkg-config" with_pkg_config "$TMPDIR/user"
check "and runs" says "fine out of memory" env LD_LIBRARY_PATH="$root/opt/tare/lib" "$TMPDIR/user"
check "the installed command runs" "$root/opt/tare/bin/tare" version
# A page for every command, each one that troff reads without a warning.
page_each() { for p in docs/cli/tare-*.md; do test -s "$root/opt/tare/share/man/man1/$(basename "$p" .md).1" || { echo "$p"; return 1; }; done; }
clean_pages()
{
    for p in "$root"/opt/tare/share/man/man1/*.1; do
        said=$(groff -man -Tutf8 -ww -z "$p" 2>&1) && [ -z "$said" ] || { echo "$p: $said"; return 1; }
    done
}
reads() { groff -man -Tutf8 "$root/opt/tare/share/man/man1/$1.1" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' | grep -q -e "$2"; }
check "each command has its man page" page_each
if command -v groff >/dev/null; then
    check "the man pages have no errors" clean_pages
    check "a man page names its options" reads tare-bench '--baseline <run>'
    check "tare(1) leads to the commands" reads tare 'tare-doctor(1)'
else
    skip "the man pages have no errors" "no groff"
fi
with_cmake() # with_cmake TARGET: a project of a user, built
{
    mkdir -p "$TMPDIR/cmake-$1" && cp tests/build/user.c "$TMPDIR/cmake-$1/"
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(user C)\nfind_package(tare %s REQUIRED)\nadd_executable(user user.c)\ntarget_link_libraries(user tare::%s)\n' \
        "${version%.*}" "$1" >"$TMPDIR/cmake-$1/CMakeLists.txt"
    cmake -S "$TMPDIR/cmake-$1" -B "$TMPDIR/cmake-$1/b" -DCMAKE_PREFIX_PATH="$root/opt/tare" && cmake --build "$TMPDIR/cmake-$1/b" &&
        says "fine out of memory" "$TMPDIR/cmake-$1/b/user"
}
refuses_newer()
{
    sed -i 's/find_package(tare [0-9.]*/find_package(tare 99.0/' "$TMPDIR/cmake-tare/CMakeLists.txt"
    ! cmake -S "$TMPDIR/cmake-tare" -B "$TMPDIR/cmake-tare/c" -DCMAKE_PREFIX_PATH="$root/opt/tare"
}
if command -v cmake >/dev/null; then
    check "a program builds with CMake" with_cmake tare
    check "and with the archive" with_cmake static
    check "a version that is not there is refused" refuses_newer
else
    skip "a program builds with CMake" "no cmake"
fi
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
