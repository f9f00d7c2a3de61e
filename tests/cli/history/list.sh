# import, list, tags, baselines, prune; what is there already is skipped and told
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 5
mkdir docs && mv run-*.json docs/ && echo '{"schema": "tare.trace/1"}' >docs/other.json
try() { tare history "$@" 2>&1; echo "exit $?"; }
try import docs
try import docs/run-1.json docs/run-5.json
try list
try list --since 2026-01-04 --limit 1
try list --subject nobody
try tag 01KA0000000000000000000002 release v1/0
try baseline main
try baseline main 01KA0000000000000000000003
try list --tag main
try list --tag release
try untag 01KA0000000000000000000002 v1/0
try untag 01KA0000000000000000000002 v1/0
try prune --keep 1 --dry-run
try prune --keep 1
try list
try baseline main 01KA0000000000000000000003 --remove
try prune --older-than 1d
try list
