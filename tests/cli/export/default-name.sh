# named after the trace; never over something that is there unless it was asked for by name
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare export app.tare -f folded && tare export app.tare -f folded
echo "exit $?"
tare export app.tare -f folded -o app.folded && tare export app.tare -f speedscope -o - | head -c 12
ls
