# a side that fails is named, with what it said; one that fails now and then is counted
tare compare --ab true "sh -c 'echo it broke >&2; exit 7'" --no-save 2>&1; echo "exit $?"
tare compare --ab 'sleep 5' true --timeout 100ms --no-save 2>&1; echo "exit $?"
tare compare --ab true "sh -c 'exit 7'" --ignore-failure --max-pairs 3 --no-save >/dev/null; echo "exit $?"
cat >flaky <<'SH'
#!/bin/sh
echo >>count
[ $(($(wc -l <count) % 20)) -ne 5 ]
SH
chmod +x flaky
tare compare --ab true ./flaky --max-pairs 50 --budget 30s --no-save --json >out.json; echo "exit $?"
python3 - <<'PY'
import json
c = json.load(open("out.json"))["cases"][0]
calls = len(open("count").readlines())  # a quiet machine is sure before the 50th pair
assert c["failed_pairs"] == (calls + 15) // 20, (c["pairs"], c["failed_pairs"], calls)
note = next(n for n in c["notes"] if n["id"] == "pairs.failed")
assert "base 0 times" in note["text"] and "exit code 1" in note["text"], note
print("good")
PY
