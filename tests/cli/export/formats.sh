# every format can be read back, and tells the same story
. "$TARE_SRC/tests/cli/report/program.bash"
program && record
for f in chrome perfetto speedscope folded; do tare export app.tare -f $f -o out.$f >said || exit; done
python3 - <<'PY'
import json
chrome = json.load(open("out.chrome"))
depth, begun = {}, 0
for e in chrome["traceEvents"]:
    if e["ph"] in "BE":
        k = (e["pid"], e["tid"])
        depth[k] = depth.get(k, 0) + (1 if e["ph"] == "B" else -1)
        begun += e["ph"] == "B"
        assert depth[k] >= 0
assert set(depth.values()) == {0} and begun == 1 + 1 + 150 * 2 + 15, begun
assert {e["name"] for e in chrome["traceEvents"] if e["ph"] == "i"} == {"epoch"}
scope = json.load(open("out.speedscope"))
assert len(scope["profiles"]) == 2
assert sum(e["type"] == "O" for p in scope["profiles"] for e in p["events"]) == begun
for p in scope["profiles"]:
    at, stack = p["startValue"], []
    for e in p["events"]:
        assert e["at"] >= at
        at = e["at"]
        stack.append(e["frame"]) if e["type"] == "O" else stack.remove(stack[-1]) if stack[-1] == e["frame"] else 1 / 0
    assert not stack and at == p["endValue"]
folded = [l.rsplit(" ", 1) for l in open("out.folded").read().splitlines()]
assert all(int(w) > 0 for _, w in folded)
assert "main \"quoted\"\\x3b\\n;step;load" in [s for s, _ in folded], folded
print("good")
PY
