#!/bin/sh
# SPDX-License-Identifier: MIT
# same.sh - the same commit, built twice in different folders at different times, gives the same bytes: the page, a wheel, the source package, the
# Debian packages.
set -u
. "$(dirname "$0")/../build/lib.sh"
cd "$TARE_SRC" || exit 1
if ! git rev-parse -q --verify HEAD >/dev/null || [ ! -f third_party/portable/openssl.stamp ]; then
    skip "two builds give the same bytes" "no repository, or no libraries yet (make dist)"
    finish
fi
built() # FOLDER UMASK: a clone, with the same packages of npm and the same libraries beside it
(
    git clone -q . "$TMPDIR/$1" && cd "$TMPDIR/$1" || return 1
    umask "$2"
    ln -s "$TARE_SRC/third_party" third_party
    cp -R "$TARE_SRC/web/node_modules" web/node_modules 2>/dev/null && touch web/node_modules/.stamp
    env -u SOURCE_DATE_EPOCH packaging/dist /usr/bin/python3 && env -u SOURCE_DATE_EPOCH packaging/deb/build
)
same() { (cd "$TMPDIR/one/$1" && sha256sum -- *.* | LC_ALL=C sort) >"$TMPDIR/a" && (cd "$TMPDIR/another-place/$1" && sha256sum -- *.* | LC_ALL=C sort) >"$TMPDIR/b" && diff "$TMPDIR/a" "$TMPDIR/b" && cat "$TMPDIR/a"; }
same_page() { cmp "$TMPDIR/one/build/portable/page.html" "$TMPDIR/another-place/build/portable/page.html"; }
check "built in one folder" built one 022
check "and in another, a minute later, with another umask" built another-place 077
check "the page has the same bytes" same_page
check "wheel, source package and Debian packages have the same bytes" same dist
finish
