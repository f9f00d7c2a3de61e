# each with its cause and exit 2
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 2
try() { tare trend "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try
tare history import run-1.json >/dev/null
sed 's/"minilm-l6"/"another"/' run-2.json >b.json; tare history import b.json >/dev/null
try
try --subject nobody
try --subject another --case batch=99
try --subject another --metric latensy.p50
try --subject another --metric accuracy
try --subject another --anchored
try --anchored --absolute
try --last 0
try --subject another
