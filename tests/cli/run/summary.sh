# the summary on stderr, nothing on stdout; the document says the same again
tare run --interval 20ms --no-default-alerts --alert 'process.count>0' --grid 400 -o run.json -- sh -c 'sleep 0.3; exit 3' 2>said; echo $?
sed '/^the program over the run/q' said | sed -n 's/^\(subject\|time\|cpu\|memory\|storage\|tare\) .*/\1/p; s/^\(phases\|the program over the run\)$/\1/p'
sed -n 's/^  \(process.count>0\): from .*/\1/p; s/^tare run: \(alert: process.count>0\).*/\1/p' said
tare report run.json | sed '/^the program over the run/q' | sed -n 's/^\(subject\|time\|cpu\|memory\|storage\|tare\) .*/\1/p; s/^\(phases\|the program over the run\)$/\1/p'
ls
# readings are counted: whole numbers
awk '/^metric .* readings /{seen=1; next} seen && /^process.memory.rss/{print ($2 ~ /^[0-9,]+$/) ? "whole" : $2}' said
