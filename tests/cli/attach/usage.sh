# what cannot be is refused with the reason
try() { echo "\$ tare attach $*"; tare attach "$@"; echo "exit $?"; }
exec 2>&1
try
try --once --hz 5 12
try --once
try --once zwölf
try --once 0
try --once 12 13
try --locals 12
try --once 4194999
true
