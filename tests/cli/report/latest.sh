# without a name, or with a folder, it is the latest run that is kept there; results stay out of a repository
. "$TARE_SRC/tests/cli/history/runs.bash"
make_runs 3
tare report 2>&1; echo "exit $?"
tare history import run-*.json >/dev/null 2>&1
tare report | sed -n '1,2p;/^measured/p'
mv tare-results elsewhere
tare report elsewhere | sed -n '/^measured/p'
mkdir empty; tare report empty 2>&1; echo "exit $?"
tare bench --max-runs 2 --budget 10ms -- true >/dev/null 2>&1
cat tare-results/.gitignore
tare bench --max-runs 2 --budget 10ms --output-dir mine -- true >/dev/null 2>&1
[ -e mine/.gitignore ] || echo 'a folder that was named is left as it is'
