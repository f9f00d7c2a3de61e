#!/bin/sh
# SPDX-License-Identifier: MIT
# link.sh - programs in C and C++, of several standards and two compilers, link with both libraries and run.
set -u
. "$(dirname "$0")/lib.sh"
cd "$TARE_SRC" || exit 1
strict='-Wall -Wextra -Wshadow -Werror -Iinclude'
here=tests/build
so="-L$BUILT -ltare -Wl,-rpath,$BUILT"

answers() # answers COMMAND...: prints `fine ...` and nothing else
{
    out=$("$@" 2>&1) && [ "$out" = "fine out of memory" ] || { echo "said: $out"; return 1; }
}
is_absent() { ! grep -q "$1" "$2"; }

# shellcheck disable=SC2086
for std in c++11 c++20; do
    check "g++ -std=$std with libtare.a" g++ -std=$std $strict $here/cpp.cc "$BUILT/libtare.a" -pthread -o "$TMPDIR/static-$std"
    check "it runs" answers "$TMPDIR/static-$std"
    check "g++ -std=$std with libtare.so" g++ -std=$std $strict $here/cpp.cc $so -o "$TMPDIR/shared-$std"
    check "it runs" answers "$TMPDIR/shared-$std"
done
if command -v clang-14 >/dev/null; then
    # shellcheck disable=SC2086
    check "clang compiles the header as C++" clang-14 -x c++ -std=c++17 $strict -fsyntax-only $here/cpp.cc
fi
# shellcheck disable=SC2086
for std in c99 gnu11 gnu17; do
    check "header under $CC -std=$std -pedantic" "$CC" -std=$std -pedantic $strict -c $here/user.c -o "$TMPDIR/user.o"
done
# shellcheck disable=SC2086
check "C program with libtare.a" "$CC" $strict $here/user.c "$BUILT/libtare.a" -pthread -o "$TMPDIR/user-static"
check "it runs" answers "$TMPDIR/user-static"
# shellcheck disable=SC2086
check "C program with libtare.so" "$CC" $strict $here/user.c $so -o "$TMPDIR/user-shared"
check "it runs" answers "$TMPDIR/user-shared"
for kind in static shared; do
    check "recording: the $kind one runs" answers env TARE_TRACE="$TMPDIR/$kind.tare" "$TMPDIR/user-$kind"
    check "and leaves a trace" test -s "$TMPDIR/$kind.tare"
done
readelf -d "$BUILT/libtare.so" >"$TMPDIR/dynamic"
check "soname is libtare.so.0" grep -q 'SONAME.*\[libtare\.so\.0\]' "$TMPDIR/dynamic"
check "needs no jansson" is_absent jansson "$TMPDIR/dynamic"
check "needs no zstd" is_absent zstd "$TMPDIR/dynamic"
for example in examples/*.c; do
    [ -e "$example" ] || continue
    # shellcheck disable=SC2086
    check "$example compiles" "$CC" -O2 $strict "$example" "$BUILT/libtare.a" -pthread -lm -o "$TMPDIR/example"
done
finish
