#!/bin/sh
# SPDX-License-Identifier: MIT
# postgres.sh DIR [setting=value ..] - a PostgreSQL of a test's own, with its data and its socket in DIR and on no network.
# Runs in the foreground and dies with its parent. initdb refuses root: then it runs as nobody. DIR/data that is there
# already is started again. Exit 127: not installed.
set -eu
dir=$1
shift
bin=$(dirname "$(readlink -f "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1)")")
[ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] || { echo "PostgreSQL is not installed" >&2; exit 127; }
as=
if [ "$(id -u)" = 0 ]; then
    as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    chown 65534:65534 "$dir"
fi
# The rest of the tree may be closed to nobody, and so may the folder this was started in.
cd /
[ -e "$dir/data/PG_VERSION" ] || $as "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$dir/initdb.log"
set -- -D "$dir/data" -k "$dir" -c listen_addresses= -c max_connections=40 -c shared_buffers=16MB -c dynamic_shared_memory_type=mmap $(printf ' -c %s' "$@" | sed 's/ -c $//')
# Memory by mmap: killed, it would leave names in /dev/shm, which other tests look at.
# The second setpriv, because a change of user takes the wish back that it dies with its parent.
# shellcheck disable=SC2086
exec $as setpriv --pdeathsig KILL "$bin/postgres" "$@" >>"$dir/postgres.log" 2>&1
