# every rule of the text format and of metric names that can be checked without Prometheus; and its own checker if there is one
tare top --once --interval 200ms --prom >metrics.txt
python3 - <<'PY'
import re
names, types, helps, seen, last = [], {}, {}, set(), None
text = open("metrics.txt", encoding="utf-8").read()
assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
for line in text.splitlines():
    h = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
    if h:
        kind, name, rest = h.groups()
        into = helps if kind == "HELP" else types
        assert name not in into and name not in seen, line      # once, and before its samples
        into[name] = rest
        last = name
        continue
    s = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"\})? (\S+)', line)
    assert s, line
    name, labels, value = s.groups()
    assert name == last and types[name] in ("gauge", "counter") and helps[name], line   # families are not mixed
    assert (name, labels) not in seen, line
    seen.update([(name, labels), name])
    float(value)
    assert types[name] != "counter" or (name.endswith("_total") and float(value) >= 0), line
    assert types[name] == "counter" or not name.endswith(("_total", "_count", "_sum", "_bucket")), line
    names.append(name)
assert {"tare_cpu_busy_seconds_total", "tare_cpus", "tare_memory_total_bytes", "tare_load_1m"} <= set(names)
print("good")
PY
! command -v promtool >/dev/null || promtool check metrics <metrics.txt
