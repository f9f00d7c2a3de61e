# a sweep: a row per case, and a document that can be reported again in every format
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
tare bench mlp.onnx --batch 1,8 --threads 1 --budget 200ms --unit rows --csv out.csv --md out.md --junit out.xml >text || exit
grep -c '^ *[18] ' text
cut -d, -f1-3 out.csv | wc -l
head -c 2 out.md; echo
tail -n 1 out.xml
ls tare-results | grep -v history.db | sed 's/[0-9]\{8\}-[0-9]\{6\}/TIME/'
for f in text json csv md junit; do tare report tare-results/*.json --format $f >again.$f || exit; done
cmp out.csv again.csv && cmp text again.text && echo same
