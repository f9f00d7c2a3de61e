# SPDX-License-Identifier: MIT
# make_runs N: N run documents run-1.json .., a day apart, of one subject, with ids and commits that sort. Sourced.
make_runs() {
    python3 - "$1" "$TARE_SRC/tests/cli/report/sweep.run.json" <<'PY'
import json, sys
n, doc = int(sys.argv[1]), json.load(open(sys.argv[2]))
doc["cases"] = doc["cases"][:2]
for i in range(1, n + 1):
    doc["id"] = "01KA%022d" % i
    doc["created"] = "2026-%02d-%02dT12:00:00.000Z" % (1 + (i - 1) // 28, 1 + (i - 1) % 28)
    doc["config"]["git_commit"] = "%07x" % (0xabc0000 + i) + 33 * "0"
    doc["config"]["git_branch"] = "main"
    slow = 1.1 if i > 30 else 1.0
    noise = 1 + ((i * 7919) % 13 - 6) / 600
    for c in doc["cases"]:
        base = 70000000 if c["name"].startswith("batch=1,") else 110000000
        v = int(base * slow * noise)
        c["latency_ns"]["p50"] = {"value": v, "lo": v - 100000, "hi": v + 100000}
    json.dump(doc, open("run-%d.json" % i, "w"), indent=1)
PY
}
