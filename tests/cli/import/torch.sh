# a real file of torch.profiler on an H200 becomes a trace that the reports read; without an option it is guessed
tare import --torch-profile "$TARE_SRC/tests/cli/import/h200-streams.json.gz" -o x.tare | sed "s|$TARE_SRC/||" || exit
tare import "$TARE_SRC/fuzz/corpus/kineto/h200-compiled.json.gz" --json -o y.tare | sed "s|$TARE_SRC/||"
tare report --gpu y.tare | sed -n '/^kernel /,/^copy/p' | cut -c 1-160
tare export -f chrome x.tare -o x.json 2>/dev/null | sed 's/: [0-9]* KiB/: N KiB/'; ls
tare import "$TARE_SRC/fuzz/corpus/kineto/small.json" >out; sed -n '$p' out | sed 's/[0-9]\{8\}-[0-9]\{6\}/DATE/'
