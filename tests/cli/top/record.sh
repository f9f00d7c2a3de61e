# what was recorded is what is shown again
tare top --once --interval 200ms --json --record kept.tare >live.json
tare top --once --replay kept.tare --json >again.json
tare top --once --replay kept.tare | grep -c -e '^CPU ' -e '^Mem ' -e ' COMMAND '
tare top --once --replay kept.tare --prom >again.prom
python3 - <<'PY'
import json
live, again = json.load(open("live.json")), json.load(open("again.json"))
assert live["at"][:16] == again["at"][:16] and abs(live["interval_s"] - again["interval_s"]) < 1e-6
same = {k: v for k, v in again["metrics"].items() if not k.startswith("process.")}
for name, m in live["metrics"].items():
    if name.startswith("process."):
        continue
    other = same.pop(name)
    assert m["unit"] == other["unit"] and m["values"].keys() == other["values"].keys(), name
    for label, v in m["values"].items():
        assert abs(v - other["values"][label]) <= abs(v) * 1e-9, (name, label)
assert not same, same
for name, q in live["derived"].items():
    assert q["value"] is None or abs(q["value"] - again["derived"][name]["value"]) < 1e-9 + abs(q["value"]) * 1e-6, name
before = {p["pid"]: p for p in live["processes"]}
assert again["processes"]
for p in again["processes"]:
    assert before[p["pid"]]["rss_bytes"] == p["rss_bytes"] and before[p["pid"]]["threads"] == p["threads"], p
print("good")
PY
cat kept.tare | head -c 3000 >cut.tare
tare top --once --replay cut.tare >/dev/null 2>err; echo "cut: exit $?"
