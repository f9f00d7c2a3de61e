# each with its cause; the history stays as it was
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 2
try() { tare history "$@" 2>&1; echo "exit $?"; }
try list
try
try lst
try show
try show --keep 3 latest
try prune
try import run-1.json missing.json run-2.json
echo '{"schema": "tare.run/1"}' >empty.json; echo 'no json' >text.json; printf '{\n' >half.jsonl
try import empty.json text.json half.jsonl
try show nothing
try show 01KA
try tag latest 'not good'
try list --since yesterday
try list --since 2026-02-31
try list --history .
echo 'something else entirely, and long enough to be read as a page' >text.db
try list --history text.db
python3 -c 'import sqlite3
d = sqlite3.connect("other.db"); d.execute("create table t(a)"); d.commit()
d = sqlite3.connect("newer.db"); d.execute("pragma application_id=1952543333"); d.execute("pragma user_version=99"); d.execute("create table t(a)"); d.commit()'
try list --history other.db
try list --history newer.db
python3 -c 'import os, shutil, sqlite3
for name, sql in [("view", ["drop table tag", "create view tag as with recursive n(i) as (select 1 union all select i + 1 from n) select i as run, i as name from n"]),
                  ("trigger", ["create trigger empty after insert on run begin delete from document; end"]),
                  ("table", ["create table more(a)"]), ("index", ["create index odd on run(length(subject))"]),
                  ("stat", ["analyze"])]:
    shutil.copy("tare-results/history.db", name + ".db")
    d = sqlite3.connect(name + ".db"); [d.execute(s) for s in sql]; d.commit(); d.close()'
for kind in view trigger table index; do try list --history $kind.db; done
tare history list --limit 1 --history stat.db >/dev/null; echo "exit $?"
tare bench --max-runs 2 --warmup 1 --history newer.db -- true 2>&1 >/dev/null | grep -v 'kept as'
ls tare-results | sed 's/[0-9]\{8\}-[0-9]\{6\}/TIME/'
try list --limit 1
