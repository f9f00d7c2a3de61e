# SPDX-License-Identifier: MIT
"""Exports as other tools read them: a real trace is recorded, exported and parsed with each format's rules."""

import json
import re
import struct

import pytest

PROGRAM = r"""
#include <pthread.h>
#include <tare/tare.h>
static volatile unsigned long sum;
static void spin(unsigned n) { while (n--) sum += n; }
static void load(int i) { TARE_SCOPE("load"); spin(1000); tare_count("tokens", i % 3 - 1); }
static void step(int i) { TARE_SCOPE("step"); load(i); if (i == 7) tare_mark("epoch", "number \"%d\"", i); }
static void *work(void *p) { TARE_SCOPE("worker"); for (int i = 0; i < 40; i++) step(i); return p; }
int main(void)
{
    tare_site *odd = tare_site_new(TARE_SITE_SCOPE, "q\"\\\n;\x01\xff\xed\xa0\x80 end", "od\"d.c", 7);
    tare_scope s;
    pthread_t t;
    TARE_SCOPE("main");
    pthread_create(&t, 0, work, 0);
    for (int i = 0; i < 30; i++) step(i);
    tare_begin(&s, odd);
    tare_end(&s);
    pthread_join(t, 0);
    return 0;
}
"""
SCOPES = 1 + 30 * 2 + 1 + 1 + 40 * 2


@pytest.fixture
def record(compile_c, clean_env, tmp_path):
    """record(TARE_MODE=...): run the program, return its trace."""
    import subprocess

    program = compile_c(PROGRAM)

    def call(**env):
        trace = tmp_path / "app.tare"
        subprocess.run([program], env={**clean_env, "TARE_TRACE": str(trace), "TARE_WEIGH": "off", **env}, check=True,
                       timeout=60, cwd=tmp_path)
        return trace

    return call


def export(tare, trace, kind):
    out = trace.with_suffix("." + kind)
    tare("export", trace, "--format", kind, "-o", out)
    return out


# ---- Perfetto: a reader of the protobuf wire, and the fields of the messages that a trace of ours may hold

VARINT, MESSAGE, TEXT, FIXED = "varint", "message", "text", "fixed64"
SCHEMA = {
    "Trace": {1: ("packet", "TracePacket")},
    "TracePacket": {8: ("timestamp", VARINT), 10: ("sequence", VARINT), 11: ("event", "TrackEvent"),
                    12: ("interned", "InternedData"), 13: ("flags", VARINT), 59: ("defaults", "Defaults"),
                    60: ("track", "TrackDescriptor")},
    "TrackEvent": {4: ("note", "DebugAnnotation"), 9: ("type", VARINT), 10: ("name_iid", VARINT),
                   11: ("track_uuid", VARINT), 30: ("counter", VARINT), 34: ("source_iid", VARINT),
                   23: ("name", TEXT), 44: ("value", FIXED), 47: ("flow", FIXED), 48: ("flow_end", FIXED)},
    "DebugAnnotation": {2: ("bool", VARINT), 6: ("string", TEXT), 10: ("name", TEXT), 17: ("string_iid", VARINT)},
    "InternedData": {2: ("name", "EventName"), 4: ("source", "SourceLocation"), 29: ("string", "EventName")},
    "EventName": {1: ("iid", VARINT), 2: ("name", TEXT)},
    "SourceLocation": {1: ("iid", VARINT), 2: ("file", TEXT), 4: ("line", VARINT)},
    "Defaults": {11: ("event", "EventDefaults")},
    "EventDefaults": {11: ("track_uuid", VARINT)},
    "TrackDescriptor": {1: ("uuid", VARINT), 2: ("name", TEXT), 3: ("process", "Process"), 4: ("thread", "Thread"),
                        5: ("parent", VARINT), 8: ("counter", "Counter")},
    "Process": {1: ("pid", VARINT), 2: ("cmdline", TEXT), 6: ("name", TEXT)},
    "Thread": {1: ("pid", VARINT), 2: ("tid", VARINT), 5: ("name", TEXT)},
    "Counter": {3: ("unit", VARINT), 6: ("unit_name", TEXT)},
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        assert shift <= 70
        if byte < 0x80:
            return value, at


def parse(data, message):
    """A message as {field: [values]}. Unknown fields and torn lengths fail."""
    at, out = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        field, kind = SCHEMA[message][key >> 3]
        assert key & 7 == {VARINT: 0, FIXED: 1}.get(kind, 2), (message, field)
        if kind == FIXED:
            out.setdefault(field, []).append(int.from_bytes(data[at:at + 8], "little"))
            at += 8
            continue
        value, at = varint(data, at)
        if kind != VARINT:
            assert at + value <= len(data)
            piece, at = data[at:at + value], at + value
            value = piece.decode("utf-8") if kind == TEXT else parse(piece, kind)
        out.setdefault(field, []).append(value)
    return out


def one(message, field, default=None):
    values = message.get(field, [default])
    assert len(values) == 1, field
    return values[0]


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def test_perfetto_sequences(tare, record):
    packets = parse(export(tare, record(), "perfetto").read_bytes(), "Trace")["packet"]
    tracks = {one(t, "uuid"): t for p in packets for t in p.get("track", [])}
    assert len(tracks) == sum(len(p.get("track", [])) for p in packets)
    for t in tracks.values():
        assert "parent" not in t or one(t, "parent") in tracks
    sequences, scopes, counters, marks, names = {}, 0, {}, [], set()
    for p in packets:
        if "event" not in p:
            continue
        e, flags = one(p, "event"), one(p, "flags")
        s = sequences.get(one(p, "sequence"))
        assert (s is None) == bool(flags & 1) and flags & 2
        if s is None:
            track = one(one(one(p, "defaults"), "event"), "track_uuid")
            assert "thread" in tracks[track]
            s = sequences[one(p, "sequence")] = {"stack": [], "names": {}, "at": 0, "track": track}
        for data in p.get("interned", []):
            for n in data["name"]:
                assert one(n, "iid") not in s["names"]
                s["names"][one(n, "iid")] = one(n, "name")
        assert one(p, "timestamp") >= s["at"]
        s["at"] = one(p, "timestamp")
        kind = one(e, "type")
        if kind == 1:
            s["stack"].append(s["names"][one(e, "name_iid")])
            names.add("/".join(s["stack"]))
            scopes += 1
        elif kind == 2:
            s["stack"].pop()
        elif kind == 3:
            marks.append((s["names"][one(e, "name_iid")], one(one(e, "note"), "string")))
        else:
            assert kind == 4 and one(tracks[one(e, "track_uuid")], "parent") == s["track"]
            counters[one(e, "track_uuid")] = signed(one(e, "counter"))
    assert all(not s["stack"] for s in sequences.values()) and len(sequences) == 2
    assert scopes == SCOPES and {"main/step/load", "worker/step/load"} <= names
    assert sorted(marks) == [("epoch", 'number "7"')] * 2
    assert sorted(counters.values()) == sorted([sum(i % 3 - 1 for i in range(30)), sum(i % 3 - 1 for i in range(40))])


def test_perfetto_with_the_official_schema(tare, record):
    official = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = official.Trace()
    trace.ParseFromString(export(tare, record(), "perfetto").read_bytes())
    assert sum(p.HasField("track_event") and p.track_event.type == 1 for p in trace.packet) == SCOPES
    unknown = pytest.importorskip("google.protobuf.unknown_fields").UnknownFieldSet
    assert not any(len(unknown(m)) for p in trace.packet for m in (p, p.track_event, p.track_descriptor))
    (epoch,) = {p.track_event.name_iid for p in trace.packet if p.track_event.type == 3}
    assert {n.name for p in trace.packet for n in p.interned_data.event_names if n.iid == epoch} == {"epoch"}
    assert sum(p.track_descriptor.HasField("thread") for p in trace.packet) == 2


# ---- calls that wait

TASKS = r"""
#include <stdio.h>
#include <time.h>
#include <tare/tare.h>
static void ms(long n) { nanosleep(&(struct timespec){0, n * 1000000}, 0); }
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static void eight(tare_site *request, tare_site *parse)
{
    tare_scope outer[8], inner[8];
    double before[8], after[8];
    for (int i = 0; i < 8; i++) {
        before[i] = now();
        tare_open(&outer[i], request);
        after[i] = now();
        tare_open(&inner[i], parse);
        tare_pause(&inner[i]);
        tare_pause(&outer[i]);
    }
    ms(20);
    for (int i = 0; i < 8; i++) {
        tare_resume(&outer[i], 1);
        tare_resume(&inner[i], 1);
        tare_end(&inner[i]);
        tare_pause(&outer[i]);
    }
    ms(10);
    for (int i = 0; i < 8; i++) {
        tare_resume(&outer[i], 1);
        double least = now() - after[i];
        if (i < 7) tare_end(&outer[i]); else tare_pause(&outer[i]); /* the last is never ended */
        if (i < 7) printf("%f %f\n", least, now() - before[i]);
    }
}
int main(void)
{
    tare_site *request = tare_site_new(TARE_SITE_SCOPE, "request", "t.c", 1);
    tare_site *parse = tare_site_new(TARE_SITE_SCOPE, "parse", "t.c", 2);
    TARE_SCOPE("main");
    eight(request, parse);
    eight(request, parse);
    return 0;
}
"""


@pytest.fixture
def tasks(compile_c, clean_env, tmp_path):
    import subprocess

    trace = tmp_path / "tasks.tare"
    done = subprocess.run([compile_c(TASKS)], env={**clean_env, "TARE_TRACE": str(trace)}, check=True, timeout=60, stdout=subprocess.PIPE, text=True)
    return trace, [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def check_bars(bars, lengths):
    """bars: (lane, name, begin ms, end ms), of two rounds of eight requests that overlap: bars as long as the program found them
    (ms: at least, at most), each with what it called inside it, and a lane for each, used again."""
    requests = sorted((b for b in bars if b[1] == "request"), key=lambda b: b[2])
    parses = [b for b in bars if b[1] == "parse"]
    assert len(requests) == len(parses) == 16 and len(bars) == 32
    ended = requests[:7] + requests[8:15]
    assert all(29 < b[3] - b[2] for b in ended)
    for (_, _, begin, end), (least, most) in zip(ended, lengths, strict=True):
        assert 0.999 * least < end - begin < 1.001 * most
    assert len({b[0] for b in requests[:8]}) == 8 and len({b[0] for b in requests}) == 9  # one never ended
    for lane, _, begin, end in parses:
        assert 19 < end - begin and sum(r[0] == lane and r[2] <= begin and end <= r[3] for r in requests) == 1
    by_lane = {}
    for lane, _, begin, end in requests:
        assert all(end <= b or e <= begin for b, e in by_lane.setdefault(lane, []))
        by_lane[lane].append((begin, end))


def test_calls_that_wait_are_bars_in_chrome(tare, tasks):
    open_, bars, slices, lengths = {}, [], 0, tasks[1]
    events = strict(export(tare, tasks[0], "chrome"))["traceEvents"]
    for e in sorted((e for e in events if e["ph"] in "be"), key=lambda e: e["ts"]):
        stack = open_.setdefault(e["id2"]["local"], [])
        if e["ph"] == "b":
            stack.append(e)
        else:
            begin = next(b for b in reversed(stack) if b["name"] == e["name"])
            stack.remove(begin)
            bars.append((e["id2"]["local"], e["name"], begin["ts"] / 1e3, e["ts"] / 1e3))
    assert not any(open_.values())
    check_bars(bars, lengths)
    slices = sum(e["ph"] == "B" for e in events)
    assert slices == 1 + 16 * 5  # the thread has what ran, in pieces


def test_calls_that_wait_are_bars_in_perfetto(tare, tasks):
    packets = parse(export(tare, tasks[0], "perfetto").read_bytes(), "Trace")["packet"]
    lanes = {one(t, "uuid"): one(t, "name") for p in packets for t in p.get("track", []) if "name" in t}
    names = {one(n, "iid"): one(n, "name") for p in packets for d in p.get("interned", []) for n in d["name"]}
    open_, bars, lengths = {}, [], tasks[1]
    events = [(one(p, "timestamp"), one(p, "event")) for p in packets if "event" in p]
    for at, e in sorted(events, key=lambda e: e[0]):
        lane = lanes.get(one(e, "track_uuid", 0))
        if lane and one(e, "type") == 1:
            open_.setdefault(lane, []).append((names[one(e, "name_iid")], at))
        elif lane:
            name, begin = open_[lane].pop()
            bars.append((lane, name, begin / 1e6, at / 1e6))
    assert sorted(set(lanes.values())) == ["task %d" % n for n in range(1, 10)]
    check_bars(bars, lengths)


# ---- the JSON formats


def strict(path):
    """JSON that is UTF-8, holds no NaN and no key twice."""

    def pairs(items):
        assert len({k for k, _ in items}) == len(items)
        return dict(items)

    return json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=pairs, parse_constant=lambda c: 1 / 0)


def test_chrome(tare, record):
    path = export(tare, record(), "chrome")
    trace = strict(path)
    assert trace["displayTimeUnit"] == "ns"
    stacks, last, begun, sums = {}, {}, 0, {}
    for e in trace["traceEvents"]:
        if e["ph"] == "M":
            continue
        where = (e["pid"], e["tid"])
        assert e["ts"] >= last.get(where, 0)
        last[where] = e["ts"]
        if e["ph"] == "B":
            stacks.setdefault(where, []).append(e["name"])
            begun += 1
        elif e["ph"] == "E":
            stacks[where].pop()
        elif e["ph"] == "C":
            sums[e["id"]] = e["args"]["sum"]
        else:
            assert e["ph"] == "i" and e["s"] == "t" and e["args"] == {"text": 'number "7"'}
    assert begun == SCOPES and not any(stacks.values())
    assert sorted(sums.values()) == sorted([sum(i % 3 - 1 for i in range(30)), sum(i % 3 - 1 for i in range(40))])
    assert re.search(r'"ts":\d+\.\d{3},', path.read_text(encoding="utf-8"))
    assert {e["name"] for e in trace["traceEvents"] if e["ph"] == "M"} == {"process_name", "thread_name"}


# What speedscope's importer asks of a file, in the terms of JSON Schema.
NUMBER, WORD = {"type": "number"}, {"type": "string"}
EVENT = {"type": "object", "required": ["type", "frame", "at"], "additionalProperties": False,
         "properties": {"type": {"enum": ["O", "C"]}, "frame": {"type": "integer", "minimum": 0}, "at": NUMBER}}
COMMON = {"name": WORD, "unit": {"enum": ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]},
          "startValue": NUMBER, "endValue": NUMBER}
EVENTED = {"type": "object", "required": ["type", "events", *COMMON],
           "properties": {**COMMON, "type": {"const": "evented"}, "events": {"type": "array", "items": EVENT}}}
SAMPLED = {"type": "object", "required": ["type", "samples", "weights", *COMMON],
           "properties": {**COMMON, "type": {"const": "sampled"}, "weights": {"type": "array", "items": NUMBER},
                          "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}}}
SPEEDSCOPE = {
    "type": "object", "required": ["$schema", "shared", "profiles"], "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": WORD, "exporter": WORD, "activeProfileIndex": {"type": "integer"},
        "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": {
            "type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": WORD, "file": WORD, "line": NUMBER, "col": NUMBER}}}}},
        "profiles": {"type": "array", "minItems": 1, "items": {"oneOf": [EVENTED, SAMPLED]}},
    },
}


def test_speedscope_events(tare, record):
    jsonschema = pytest.importorskip("jsonschema")
    doc = strict(export(tare, record(), "speedscope"))
    jsonschema.validate(doc, SPEEDSCOPE)
    frames, opened = doc["shared"]["frames"], 0
    for p in doc["profiles"]:
        stack, at = [], p["startValue"]
        for e in p["events"]:
            assert at <= e["at"] <= p["endValue"] and e["frame"] < len(frames)
            at = e["at"]
            if e["type"] == "O":
                stack.append(e["frame"])
                opened += 1
            else:
                assert stack.pop() == e["frame"]
        assert not stack
    assert opened == SCOPES


def test_speedscope_tree(tare, record):
    jsonschema = pytest.importorskip("jsonschema")
    doc = strict(export(tare, record(TARE_MODE="aggregate"), "speedscope"))
    jsonschema.validate(doc, SPEEDSCOPE)
    (p,) = doc["profiles"]
    assert p["type"] == "sampled" and len(p["samples"]) == len(p["weights"])
    assert sum(p["weights"]) == p["endValue"] > 0
    names = [f["name"] for f in doc["shared"]["frames"]]
    assert ["main", "step", "load"] in [[names[i] for i in s] for s in p["samples"]]


def test_folded_is_the_tree(tare, record):
    trace = record()
    lines = export(tare, trace, "folded").read_text(encoding="utf-8").splitlines()
    got = dict((stack, int(weight)) for stack, weight in (line.rsplit(" ", 1) for line in lines))
    report, want = json.loads(tare("report", "--json", trace).stdout), {}

    def walk(nodes, path):
        for n in nodes:
            here = path + [n["name"]]
            if n["kind"] == "scope" and n["self_ns"] > 0 and n["name"] in ("main", "step", "load", "worker"):
                want[";".join(here)] = n["self_ns"]
            walk(n["children"], here)

    walk(report["tree"], [])
    assert {k: v for k, v in got.items() if "end" not in k} == want and len(want) >= 4
    assert all(v > 0 for v in got.values())


def test_samples_are_counters(tare, tmp_path):
    """What probes saw of a program, in both timelines: the same curves, on the same axis. It was refused for want of events."""
    trace = tmp_path / "run.tare"
    tare("run", "-q", "--no-save", "-p", "process", "--interval", "20ms", "--no-default-alerts", "--alert",
         "process.memory.rss>1KB", "--trace", trace, "--", "sleep", "1.5")  # fmt: skip
    events = strict(export(tare, trace, "chrome"))["traceEvents"]
    curves = {}
    for e in events:
        if e["ph"] == "C":
            (unit, value), = e["args"].items()
            curves.setdefault((e["name"], unit), []).append((round(e["ts"] * 1000), value))
    assert {"process.memory.rss", "process.cpu"} <= {name for name, _ in curves}
    for (name, unit), points in curves.items():
        assert [at for at, _ in points] == sorted({at for at, _ in points}), name
        assert all(a != b for (_, a), (_, b) in zip(points, points[1:])), name
    rss = curves["process.memory.rss", "B"]
    assert all(4096 <= value < 1 << 30 for _, value in rss) and 0 <= rss[0][0] < rss[-1][0] + 1 < 10**11
    assert "process.memory.rss>1KB" in {e["name"] for e in events if e["ph"] == "i"}
    packets = parse(export(tare, trace, "perfetto").read_bytes(), "Trace")["packet"]
    tracks = {one(t, "uuid"): t for p in packets for t in p.get("track", [])}
    told = {}
    for p in packets:
        for e in p.get("event", []):
            if one(e, "type") == 4:
                track = tracks[one(e, "track_uuid")]
                value = struct.unpack("<d", one(e, "value").to_bytes(8, "little"))[0]
                told.setdefault((one(track, "name"), one(one(track, "counter"), "unit_name")), []).append((one(p, "timestamp"), value))
    assert told.keys() == curves.keys()
    for key, points in told.items():
        assert [at for at, _ in points] == [at for at, _ in curves[key]]
        assert [value for _, value in points] == pytest.approx([value for _, value in curves[key]], rel=1e-8)


def test_timeline_of_an_aggregate_trace_is_refused(tare, record, tmp_path):
    trace = record(TARE_MODE="aggregate")
    for kind in ("chrome", "perfetto"):
        done = tare("export", trace, "-f", kind, "-o", tmp_path / "out", status=2)
        assert "TARE_MODE" in done.stderr and str(trace) in done.stderr
        assert not (tmp_path / "out").exists()
