# the self-test is measured when asked for, kept, shown from then on, and told by compare; a damaged one is none
export XDG_CACHE_HOME=$PWD/cache
tare doctor --quick --json | grep '"selftest"'
tare doctor --quick --aa 4s >text || echo failed
sed -n '/^self-test/,/^$/p' text | sed -e 's/[0-9][0-9.]*/N/g' -e 's/  *- */ N % /g' | grep -c -E '^  (N ms|command|N comparisons)'
tare doctor --quick --json >answer.json
python3 - <<'PY'
import json
s = json.load(open("answer.json"))["selftest"]
assert s["comparisons"] >= 4 and s["comparisons"] == sum(k["comparisons"] for k in s["kinds"]), s
assert s["regressed"] + s["improved"] == sum(k["false_alarms"] for k in s["kinds"])
rate = s["false_alarm_rate"]
assert 0 <= rate["lo"] <= rate["value"] <= rate["hi"] <= 1 and 2 < s["spent_s"] < 60, s
for k in s["kinds"]:
    for time in (k["wall"], k["cpu"]):
        assert time["sd_pair"] > 0, k
        one, ten = time["smallest_in_1s"], time["smallest_in_10s"]
        assert one is None or one > ten > 0.01, k
assert any(k["cpu"]["finds_5_percent_s"] for k in s["kinds"]), s
PY
tare doctor --quick | grep -c '^self-test.*measured 20'
tare compare --ab true true --max-pairs 20 --no-save | grep -c 'self-test of this machine'
echo rubbish >"$(ls cache/tare/selftest-*.txt)"
tare doctor --quick --json | grep '"selftest"'
tare compare --ab true true --max-pairs 20 --no-save | grep -c 'self-test of this machine'
tare doctor --aa 1ms 2>&1 | head -1
XDG_CACHE_HOME=/proc/none HOME=/proc/none tare doctor --quick --aa 1s --json | grep -c '"comparisons"' | head -c 1
