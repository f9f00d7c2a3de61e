# one object with values, rates, units, processes, alerts, and reasons for what is unknown
tare top --once --interval 300ms --json --alert 'load.1m<100000' --filter tare >answer.json
python3 - <<'PY'
import json, os
d = json.load(open("answer.json"))
assert d["schema"] == "tare.top/1" and 0.25 < d["interval_s"] < 30, d["interval_s"]
m = d["metrics"]
cpu = m["cpu.busy"]
assert cpu["unit"] == "s" and cpu["kind"] == "counter"
cores = [k for k in cpu["values"] if k]
assert len(cores) == m["cpu.count"]["values"][""] and "rates" not in m["cpu.count"]
assert abs(sum(cpu["values"][c] for c in cores) - cpu["values"][""]) < 1, cpu
assert all(-0.01 <= r <= 2 for l, r in cpu["rates"].items() if l), cpu["rates"]
assert m["memory.available"]["values"][""] <= m["memory.total"]["values"][""]
assert 0 <= d["derived"]["memory"]["value"] <= 1 and d["derived"]["memory"]["unit"] == "1"
rules = {a["rule"]: a for a in d["alerts"]}
assert rules["load.1m<100000"]["active"] and rules["load.1m<100000"]["value"] >= 0, rules
assert "cpu>80% for 10s" in rules and not rules["cpu>80% for 10s"]["active"]
assert set(m).isdisjoint(d["absent"]) and "process.cpu.user" in d["absent"]
assert all(u["probe"] and u["why"] for u in d["unknown"]), d["unknown"]
mine = [p for p in d["processes"] if p["command"].startswith("tare top --once")]
assert len(mine) == 1 and mine[0]["rss_bytes"] > 100000 and mine[0]["threads"] >= 1, d["processes"]
print("good")
PY
