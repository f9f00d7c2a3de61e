# wrong names and places: nothing is written, the trace is untouched
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
cp app.tare before; mkdir folder
try() { tare export app.tare "$@"; echo "exit $?" >&2; }
try -f crome; try; try -f folded -o app.tare; try -f folded -o ./folder/../app.tare; try -f folded -o folder
try -f folded -o no/such/folder/out; try -f folded -o ''; try -f folded -o /dev/full
tare export missing.tare -f folded; echo "exit $?" >&2
cmp app.tare before && ls -A folder
