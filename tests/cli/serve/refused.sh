# each with its cause: nothing is listened on, nothing is made
try() { tare serve "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try --bind 0.0.0.0 --port 0
try --bind localhost
try --port 70000
try --rate -1
mkdir -m 755 open && chmod 755 open
try --data open --port 0
: >file
try --data file --port 0
ls
