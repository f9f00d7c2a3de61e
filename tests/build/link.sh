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
# Scopes are recorded by code in the program itself: the library is called for few of the 60,000 begins and ends, and
# for all where the program does not know the library's layout, or does not want to.
is_whole() # is_whole TRACE: four paths of 10,000 calls each, nothing lost
{
    "$BUILT/tare" report "$1" >"$TMPDIR/report" && [ "$(grep -c '^10,000 ' "$TMPDIR/report")" = 4 ] &&
        grep -q '^lost  *nothing$' "$TMPDIR/report" || { cat "$TMPDIR/report"; return 1; }
}
calls_between() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ] || { echo "$1 calls"; return 1; }; }
wrap=-Wl,--wrap=tare_begin,--wrap=tare_end,--wrap=tare_begin_at_,--wrap=tare_end_at_
for how in '-O0 0 6000' '-O2 0 6000' '-O2=-DTARE_NO_INLINE 60000 60000' '-O2=-DTARE_LAYOUT_=99u 60000 60000'; do
    # shellcheck disable=SC2086
    set -- $how
    flags=$(echo "$1" | tr = ' ' | sed 's/TARE_LAYOUT_ /TARE_LAYOUT_=/')
    # shellcheck disable=SC2086
    check "scopes, $flags" "$CC" $flags $strict $here/scopes.c $so -o "$TMPDIR/scopes"
    # shellcheck disable=SC2086
    check "the same, counted" "$CC" $flags $strict -DCOUNT_CALLS $wrap $here/scopes.c $so -o "$TMPDIR/counted"
    for mode in aggregate events both; do
        calls=$(TARE_WEIGH=off TARE_MODE=$mode TARE_TRACE="$TMPDIR/scopes.tare" "$TMPDIR/counted")
        check "$mode: calls of the library" calls_between "$calls" "$2" "$3"
        TARE_WEIGH=off TARE_MODE=$mode TARE_TRACE="$TMPDIR/scopes.tare" "$TMPDIR/scopes" hand >/dev/null
        check "$mode: the paths" is_whole "$TMPDIR/scopes.tare"
    done
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
