# a search that is killed goes on from what it measured; a budget that is not kept is said, with its parts
. "$TARE_SRC/tests/cli/tune/fake.bash"
model m.onnx 'times batch 2 1.2' 'times batch 4 1.6' 'times batch 8 2' 'times batch 16 6' 'times no_arena 1 1.6'
tare tune m.onnx --ort "$ort" --threads 1 --only batch,arena --max-batch 16 --budget 1h >first 2>err &
for i in $(seq 500); do compgen -G 'tare-results/tune_*.part.json' >/dev/null && break; sleep 0.1; done
kill -9 $!
wait $! 2>/dev/null
tare report tare-results/tune_*.part.json >/dev/null && echo 'what it left is a document'
tuned m.onnx --threads 1 --only batch,arena --max-batch 16 --budget 1s >text
tail -n 1 text
grep -o '; [0-9]* more are from an earlier search' text | sed 's/[1-9][0-9]*/N/'
grep -o 'took .* of a budget of 1 s: looking .*, the search .*, the proof .*; a proof that was begun gets its least pairs' text | sed 's/[0-9.]* m\?s\b/T/g'
ls tare-results | grep -c part
# nothing is left for the next one where nothing is to be kept
tuned m.onnx --threads 1 --only arena --budget 1s --no-save --output-dir none | tail -n 1
ls none 2>&1 | grep -c 'No such file'
