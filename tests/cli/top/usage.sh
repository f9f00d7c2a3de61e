# what cannot be is refused with the reason, and what to do instead
try() { echo "\$ tare top $*"; tare top "$@"; echo "exit $?"; }
exec 2>&1
try
try --json
try --once --json --prom
try --once --iterations 3
try --record a.tare --replay b.tare
try --replay b.tare --pid 1
try --interval 1ms
try --sort size
try --once --alert 'cpu>80% fro 10s'
try --once --alert 'cpux>80%'
try --once --pid 4194999
try --once --replay missing.tare
echo "no trace at all" >text.tare
try --once --replay text.tare
true
