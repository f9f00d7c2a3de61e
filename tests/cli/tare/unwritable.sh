# What a command is told to write is looked at before it does anything: nothing runs, nothing is made, exit 2.
try() { # command and options; then the program or the arguments that would be worked on
    tare "$@" 2>&1 | head -n 1
    echo "exit ${PIPESTATUS[0]}"
}
mkdir folder && touch file
for o in "--output-dir file" "-o missing/x" "-o folder" "--trace missing/x" "--history file/x" "--html file/x"; do
    try run $o -- touch ran
done
for o in "--output-dir file/x" "--csv missing/x" "--md folder" "--junit missing/x" "--history file/x" "--html folder"; do
    try bench $o -- touch ran
done
try tune --csv missing/x model.onnx
for o in "-o missing/x" "--html missing/x" "--output-dir file"; do try compare $o --ab 'touch ran' 'touch ran'; done
for o in "-o missing/x" "--html missing/x"; do try report $o run.json; done
for o in "--csv missing/x" "--html missing/x" "-o folder"; do try inspect $o model.onnx; done
for o in "--csv missing/x" "-o missing/x"; do try import $o --ort-profile profile.json; done
for o in "--csv missing/x" "--html missing/x"; do try trend $o; done
try export -f chrome -o missing/x trace.tare
try synth -o missing/x mlp
try history export --jsonl missing/x
try top --once --record missing/x
ls
