# an answer on stdout that could not be written is a failure
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
tare export app.tare -f chrome -o - >/dev/full
