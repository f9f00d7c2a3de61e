# who allocated, for other tools: folded stacks, speedscope, a heap profile that a reader of pprof's format opens
history=$TARE_SRC/fuzz/corpus/trace/memory-history
tare export --memory -f folded -o - "$history"
tare export --memory -f folded --weight churn -o - "$history"
tare export --memory -f speedscope -o s.json "$history"
tare export --memory -f pprof -o heap.pb "$history"
python3 - <<'PY'
import json
d = json.load(open("s.json"))
frames = d["shared"]["frames"]
assert d["profiles"][0]["unit"] == "bytes" and len(d["profiles"]) == 10
for p in d["profiles"]:
    assert len(p["samples"]) == len(p["weights"]) and sum(p["weights"]) == p["endValue"]
    assert all(0 <= f < len(frames) for s in p["samples"] for f in s)

def varint(b, i):
    v = shift = 0
    while True:
        v |= (b[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if b[i - 1] < 128:
            return v, i

def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        assert key & 7 in (0, 2), key
        v, i = varint(b, i)
        if key & 7 == 2:
            v, i = b[i:i + v], i + v
        yield key >> 3, v

def packed(b):
    out, i = [], 0
    while i < len(b):
        v, i = varint(b, i)
        out.append(v)
    return out

top = list(fields(open("heap.pb", "rb").read()))
strings = [v.decode() for k, v in top if k == 6]
assert strings[0] == ""
types = [strings[dict(fields(v))[1]] for k, v in top if k == 1]
functions = {f[1]: f for f in (dict(fields(v)) for k, v in top if k == 5)}
places = {}
for k, v in top:
    if k == 4:
        f = dict(fields(v))
        line = dict(fields(f[4]))
        places[f[1]] = strings[functions[line[1]][2]] + ":" + str(line.get(2, 0))
for k, v in top:
    if k == 2:
        f = dict(fields(v))
        label = dict(fields(f[3]))
        print(label[3], "<".join(places[i] for i in packed(f[1])), dict(zip(types, packed(f[2]))))
PY
tare export --memory -f chrome -o - "$history" 2>&1 | head -1
tare export -f pprof "$history" 2>&1 | head -1
tare export --memory -f pprof -o - "$TARE_SRC/fuzz/corpus/trace/whole" 2>&1 | sed 's|/.*/||'
