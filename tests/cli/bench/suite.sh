# the suite of tare.yaml: found from a folder below, all entries run, the worst status wins
. "$TARE_SRC/tests/cli/bench/model.bash"
mlp
cat >tare.yaml <<'Y'
bench:
  budget: 150ms
  no-save: yes
suite:
  - {name: model, model: mlp.onnx, batch: [1, 4], target: [latency.p50<=10s]}
  - {name: words, command: ["true"]}
  - {name: line, command: "true; true", target: [latency.p50<=1ns]}
Y
mkdir deep && cd deep && tare bench >out; echo $?
grep -c '^subject' out
