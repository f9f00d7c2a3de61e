#!/bin/sh
# SPDX-License-Identifier: MIT
# no_page.sh - a tare that was built without node: everything but --html works, and --html says what is missing.
set -u
. "$(dirname "$0")/lib.sh"
cd "$TARE_SRC" || exit 1
bare=$TMPDIR/tare-without-page

link_without_page() # the objects of the real build, but for an embedding of nothing
{
    "$CC" -std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -fPIC -c src/report/page_embed.c -o "$TMPDIR/page_embed.o" || return 1
    objects=
    for source in $(find src third_party/llhttp -name '*.c' ! -name page_embed.c 2>/dev/null); do # an older build leaves objects of files that are gone
        object=$BUILT/obj/${source%.c}.o
        [ ! -e "$object" ] || objects="$objects $object"
    done
    libraries=$(make -s --no-print-directory list-libraries) || return 1
    # shellcheck disable=SC2086
    "$CC" -pthread $objects "$TMPDIR/page_embed.o" $libraries -o "$bare"
}
refuses()
{
    "$bare" report --html "$TMPDIR/out.html" tests/web/data/sweep.json
    [ $? = 3 ] && [ ! -e "$TMPDIR/out.html" ]
}
says_why() { "$bare" report --html "$TMPDIR/out.html" tests/web/data/sweep.json 2>&1 | grep -q 'node and npm'; }
runs_nothing() { ! "$bare" bench --html "$TMPDIR/out.html" -- touch "$TMPDIR/ran" && [ ! -e "$TMPDIR/ran" ]; }
serves_without_pages() # no login link, which would lead nowhere, and it says why
{
    "$bare" serve --port 0 --data "$TMPDIR/bare-data" >"$TMPDIR/bare.out" 2>"$TMPDIR/bare.err" &
    server=$!
    until grep -q 'makes a token' "$TMPDIR/bare.err" || ! kill -0 "$server"; do sleep 0.1; done
    kill "$server" && wait "$server"
    [ "$(wc -l <"$TMPDIR/bare.out")" = 1 ] && grep -q 'without pages: .*node and npm' "$TMPDIR/bare.err"
}
make_leaves_it_out() { make -n NODE= O="$TMPDIR/o" "$TMPDIR/o/obj/pages/page.html.gz" | grep -v npm | grep -q page.html.gz; }

check "it links" link_without_page
check "reports are printed" "$bare" report tests/web/data/sweep.json
check "--html exits with 3 and writes nothing" refuses
check "it says what is missing" says_why
check "before anything is measured" runs_nothing
check "a server has no login link, and says why" serves_without_pages
check "make without node embeds nothing" make_leaves_it_out
finish
