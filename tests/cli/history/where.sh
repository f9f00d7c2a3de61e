# the file: --history > TARE_HISTORY > tare.yaml > the output folder; --no-history; --no-save
go() { tare bench --max-runs 2 --warmup 1 "$@" -- true >/dev/null 2>&1; }
count() { tare history list --history "$1" --json 2>/dev/null | grep -c '"id"'; }
go; count tare-results/history.db
go --output-dir other; count other/history.db
go --no-history; go --no-save; count tare-results/history.db
TARE_HISTORY=env.db go; count env.db
TARE_HISTORY=env.db go --history flag.db; count flag.db
echo 'history: kept/here.db' >tare.yaml
go; count kept/here.db
mkdir sub && cd sub && go && cd .. && count kept/here.db
tare history list --json | grep -c '"id"'
git init -q -b topic . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
go; tare history list --json --limit 1 | grep -c "\"commit\": \"$(git rev-parse HEAD)\""
tare history list --json --limit 1 | grep -c '"branch": "topic"'
