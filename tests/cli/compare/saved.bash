# SPDX-License-Identifier: MIT
# saved_runs: a1..a3 (base), b1..b3 (20 % slower), h1..h9 (earlier), an hour apart each; runs that cannot be compared. Sourced.
saved_runs() {
    python3 - "$TARE_SRC/tests/cli/report/sweep.run.json" <<'PY'
import copy, json, sys
doc = json.load(open(sys.argv[1]))
doc["cases"] = doc["cases"][:2]
noise = [0.99, 1.0, 1.01, 1.005, 0.995, 0.992, 1.008, 1.002, 0.998]
def make(name, n, times, day, edit=None):
    d = copy.deepcopy(doc)
    d["id"] = "01KA%022d" % n
    d["created"] = "2026-01-%02dT%02d:00:00.000Z" % (day, n % 24)
    for c in d["cases"]:
        v = int(c["latency_ns"]["p50"]["value"] * times * noise[n % 9])
        c["latency_ns"]["p50"] = {"value": v, "lo": v - 100000, "hi": v + 100000}
    if edit: edit(d)
    json.dump(d, open(name, "w"))
for i in range(3):
    make("a%d.json" % (i + 1), i, 1, 1)
    make("b%d.json" % (i + 1), i + 12, 1.2, 2)
for i in range(9): make("h%d.json" % (i + 1), i + 36, 1, 3)
def cpu(d): d["host"]["cpu"]["model"] = "Another CPU"; d["host"].pop("fingerprint", None)
def load(d): d["config"]["load"] = "open"
def unit(d): d["cases"][0]["unit"] = "images"
def kind(d): d["kind"] = "watch"
def tune(d): d["kind"] = "tune"; d["cases"] += [dict(d["cases"][-1], name="tried %d" % n) for n in range(12)]
def inspect(d): d["kind"] = "inspect"
def empty(d): d["cases"] = []
def names(d): d["cases"][0]["name"] = "other"; d["cases"][1]["name"] = "batch=9,seq=128"; d["cases"][1]["params"]["batch"] = 9
def runtime(d): d["subject"]["runtime"]["version"] = "1.20.1"
def newer(d): d["schema"] = "tare.run/2"
def negative(d): d["cases"][0]["latency_ns"]["mean"] = -5
for n, f in enumerate((cpu, load, unit, kind, inspect, empty, names, runtime, newer, negative, tune)):
    make(f.__name__ + ".json", 60 + n, 1, 4, f)
text = open("a1.json").read().replace('"mean": ', '"mean": NaN, "was": ', 1)
open("nan.json", "w").write(text)
PY
}
