# SPDX-License-Identifier: MIT
"""docs/trace-format.md is right: a reader that follows it finds in a trace what the traced program did, and what
`tare report` says. The program is killed, forks, jumps out of scopes; traces are compressed, damaged, folded twice."""

import collections
import json
import signal
import struct
import subprocess

import pytest
from trace_reader import COUNTER, END, MAGIC, MARK, SCOPE, THREAD, TREE, Trace, crc32c

PROGRAM = r"""
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tare/tare.h>

static jmp_buf out;

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }
static void leaf(void) { TARE_SCOPE("leaf"); tare_count("sum", 3); tare_count("down", -5000000000); }
static void recurse(int n) { TARE_SCOPE("recurse"); if (n > 1) recurse(n - 1); }
static __attribute__((noinline)) void jump(void) { TARE_SCOPE("jumped"); longjmp(out, 1); }

static void many_names(void)
{
    TARE_SCOPE("many");
    for (int i = 0; i < 80; i++) {
        char name[32];
        tare_scope s;
        snprintf(name, sizeof name, "name-%d", i);
        tare_site *site = tare_site_new(TARE_SITE_SCOPE, name, "made.c", 7);
        tare_begin(&s, site);
        tare_end(&s);
    }
}

static void *worker(void *arg)
{
    (void)arg;
    TARE_SCOPE("worker");
    for (int i = 0; i < 5000; i++) leaf();
    return NULL;
}

static void child(void)
{
    TARE_SCOPE("child");
    leaf();
    leaf();
    TARE_SCOPE("born later");
}

static void work(void)
{
    TARE_SCOPE("main work");
    for (int i = 0; i < 7; i++) leaf();
    recurse(9);
    many_names();
    if (!setjmp(out)) jump();
    { TARE_SCOPE("landed"); } /* begins above the frame that is gone: so it is noticed */
    char text[200];
    memset(text, 'x', 199);
    text[199] = 0;
    const char *notes[] = {"h\xc3\xa9llo", "", text};
    for (int i = 0; i < 3; i++) tare_mark("note", "%s", notes[i]);
    { TARE_SCOPE("nap"); sleep_ms(12); }
    { TARE_SCOPE("long nap"); sleep_ms(getenv("LONG_NAP") ? 600 : 1); }
    sleep_ms(40);
    leaf();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    work();
    pthread_t t;
    pthread_create(&t, NULL, worker, NULL);
    pthread_join(t, NULL);
    if (strcmp(how, "fork") == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            child();
            return 0;
        }
        waitpid(pid, NULL, 0);
    }
    if (strcmp(how, "die") == 0) {
        TARE_SCOPE("dying");
        kill(getpid(), SIGKILL);
    }
    return 0;
}
"""

LEAVES = {("sum",): 3, ("down",): -5000000000}


def expected():
    """{path: (kind, count, sum)} of the program, both threads together."""
    top = ("main work",)
    want = {top: (SCOPE, 1, None), ("worker",): (SCOPE, 1, None), top + ("many",): (SCOPE, 1, None),
            top + ("nap",): (SCOPE, 1, None), top + ("long nap",): (SCOPE, 1, None), top + ("note",): (MARK, 3, None),
            top + ("jumped",): (SCOPE, 0, None), top + ("landed",): (SCOPE, 1, None)}
    for path, n in ((top + ("leaf",), 8), (("worker", "leaf"), 5000)):
        want[path] = (SCOPE, n, None)
        want[path + ("sum",)] = (COUNTER, n, 3 * n)
        want[path + ("down",)] = (COUNTER, n, -5000000000 * n)
    for i in range(9):
        want[top + ("recurse",) * (i + 1)] = (SCOPE, 1, None)
    for i in range(80):
        want[top + ("many", "name-%d" % i)] = (SCOPE, 1, None)
    return want


@pytest.fixture
def record(compile_c, clean_env, tmp_path):
    """record("die", TARE_MODE="events"): run the program, return the path of its trace."""
    program = compile_c(PROGRAM)

    def call(how="", **env):
        path = tmp_path / ("%s.tare" % (how or "plain"))
        settings = {"TARE_TRACE": str(path), "TARE_WEIGH": "off", **env}
        done = subprocess.run([program, how], env={**clean_env, **settings}, timeout=60, check=False)
        assert done.returncode == (-signal.SIGKILL if how == "die" else 0)
        return str(path)

    return call


def from_trees(trace, process):
    """{path: (kind, count, sum)} and {path: abandoned}"""
    found, abandoned = {}, collections.Counter()
    for slot in process.trees:
        for path, n in trace.paths(process, slot).items():
            kind, count, total = found.get(path, (n["kind"], 0, 0))
            found[path] = (kind, count + n["count"], total + n["total"])
            abandoned[path] += n["abandoned"]
            assert trace.site(process, n["site"])[0] == n["kind"]
    return {p: (k, c, s if k == COUNTER else None) for p, (k, c, s) in found.items()}, +abandoned


def from_events(trace, process):
    """The same from the timeline; checks that every begin has its end at the same path."""
    count, total, kinds, abandoned = collections.Counter(), collections.Counter(), {}, collections.Counter()
    for thread in process.chunks:
        open_paths, last = [], 0
        for kind, flag, ticks, path, operand in trace.events(process, thread):
            assert ticks >= last
            last = ticks
            if kind == "begin":
                open_paths.append(path)
                count[path] += 0
                kinds[path] = SCOPE
            elif kind == "end":
                assert open_paths.pop() == path
                (abandoned if flag else count)[path] += 1
            else:
                kinds[path] = COUNTER if kind == "count" else MARK
                count[path] += 1
                total[path] += operand if kind == "count" else 0
        assert not open_paths
    return {p: (k, count[p], total[p] if k == COUNTER else None) for p, k in kinds.items()}, +abandoned


def only(trace):
    assert len(trace.processes) == 1
    return next(iter(trace.processes.values()))


def flat(nodes, path=()):
    for n in nodes:
        here = path + (n["name"],)
        yield here, n
        yield from flat(n["children"], here)


def report(tare, path):
    return json.loads(tare("report", path, "--json").stdout)


def check_against_report(trace, document):
    """Names, places, counts, sums, lengths."""
    kinds = {"scope": SCOPE, "counter": COUNTER, "mark": MARK}
    merged, ns = {}, collections.Counter()
    for p in trace.processes.values():
        for slot in p.trees:
            for path, n in trace.paths(p, slot).items():
                kind, count, total, site = merged.get(path, (n["kind"], 0, 0, trace.site(p, n["site"])))
                merged[path] = (kind, count + n["count"], total + n["total"], site)
                ns[path] += n["total"] * trace.tick_ns(p)
    said = dict(flat(document["tree"]))
    assert set(said) == set(merged)
    for path, (kind, count, total, site) in merged.items():
        n = said[path]
        assert (kinds[n["kind"]], n["count"], n["file"] or "", n["line"]) == (kind, count, site[2], site[3]), path
        if kind == COUNTER:
            assert n["sum"] == total
        if kind == SCOPE and count:
            assert abs(n["gross_total_ns"] - ns[path]) <= 1 + ns[path] * 1e-6, path
    pids = sorted(p.info["pid"] for p in trace.processes.values())
    assert sorted(p["pid"] for p in document["trace"]["processes"]) == pids


def test_closed_trace(record, tare):
    path = record(LONG_NAP="1")
    trace = Trace(path)
    p = only(trace)
    for found, abandoned in (from_trees(trace, p), from_events(trace, p)):
        assert found == expected()
        assert abandoned == {("main work", "jumped"): 1}
    assert p.end == {"closed": 1, "lost_scopes": 0, "lost_events": 0, "damaged": 0}
    assert trace.damaged_bytes == trace.damaged_chunks == trace.unknown_chunks == 0
    assert sum(t["abandoned"] for t in p.threads.values()) == 1
    assert len(p.threads) == 2
    document = report(tare, path)
    check_against_report(trace, document)
    events = sum(len(trace.events(p, t)) for t in p.chunks)
    assert document["trace"]["events"] == events
    assert document["trace"]["id"] == trace.run_id
    assert document["trace"]["command"] == p.command


def test_a_jump_noticed_at_the_end(compile_c, clean_env, tmp_path):
    """Nothing begins after the jump: the end of the scope around it finds the one that is gone."""
    program = compile_c(r"""
        #include <setjmp.h>
        #include <tare/tare.h>
        static jmp_buf out;
        static void jump(void) { TARE_SCOPE("jumped"); longjmp(out, 1); }
        static void around(void) { TARE_SCOPE("around"); if (!setjmp(out)) jump(); }
        int main(void) { for (int i = 0; i < 3; i++) around(); return 0; }
    """)
    path = str(tmp_path / "jump.tare")
    subprocess.run([program], env={**clean_env, "TARE_TRACE": path}, check=True)
    trace = Trace(path)
    want = {("around",): (SCOPE, 3, None), ("around", "jumped"): (SCOPE, 0, None)}
    for found, abandoned in (from_trees(trace, only(trace)), from_events(trace, only(trace))):
        assert found == want
        assert abandoned == {("around", "jumped"): 3}


def test_marks_keep_their_text(record):
    trace = Trace(record())
    p = only(trace)
    texts = [operand for t in p.chunks for kind, _, _, _, operand in trace.events(p, t) if kind == "mark"]
    assert texts == ["h\u00e9llo", "", "x" * 120]


def test_histograms_hold_every_reading(record):
    trace = Trace(record())
    p = only(trace)
    for slot in p.trees:
        for path, n in trace.paths(p, slot).items():
            if n["kind"] != SCOPE or not n["count"]:
                continue
            assert sum(n["histogram"].values()) == n["count"], path
            assert min(low for low, _ in n["histogram"]) <= n["min"] <= n["max"] < max(h for _, h in n["histogram"])
            assert sum(n["batches"]) <= n["total"]
            assert len(n["batches"]) * n["batch_size"] <= n["count"]


def test_tree_and_timeline_agree_on_lengths(record):
    """The tree reads ticks, the timeline units of up to 2 ns: each call may differ by one unit at each end."""
    trace = Trace(record())
    p = only(trace)
    ticks, calls = collections.Counter(), collections.Counter()
    for thread in p.chunks:
        starts = []
        for kind, flag, at, path, _ in trace.events(p, thread):
            if kind == "begin":
                starts.append(at)
            elif kind == "end":
                begun = starts.pop()
                ticks[path] += 0 if flag else at - begun
                calls[path] += not flag
    slack = 2 * 2 / trace.tick_ns(p)
    for slot in p.trees:
        for path, n in trace.paths(p, slot).items():
            if n["kind"] == SCOPE:
                assert abs(n["total"] - ticks[path]) <= slack * n["count"], path


def test_time_axis(record, tare, tmp_path):
    """Times of the timeline are those that tare itself puts into an export."""
    path = record()
    trace = Trace(path)
    p = only(trace)
    tare("export", path, "--format", "chrome", "-o", tmp_path / "out.json")
    exported = json.loads((tmp_path / "out.json").read_text())
    rows = exported["traceEvents"] if isinstance(exported, dict) else exported
    naps = [e for e in rows if e.get("name") in ("nap", "long nap") and e["ph"] in "BX"]
    mine = {e[3][-1]: trace.time_ns(p, e[2]) for t in p.chunks for e in trace.events(p, t)
            if e[0] == "begin" and e[3][-1] in ("nap", "long nap")}
    assert len(naps) == len(mine) == 2
    apart = abs(naps[1]["ts"] - naps[0]["ts"]) * 1000
    assert abs(apart - abs(mine["long nap"] - mine["nap"])) < 2000
    assert apart >= 12e6


def test_killed_process(record, tare):
    path = record("die")
    trace = Trace(path)
    p = only(trace)
    assert p.end["closed"] == 0
    want = expected()
    want[("dying",)] = (SCOPE, 0, None)
    for found, abandoned in (from_trees(trace, p), from_events(trace, p)):
        assert found == want
        abandoned.pop(("dying",), None)  # open in the record: the timeline ends it, the tree knows nothing of it
        assert abandoned == {("main work", "jumped"): 1}
    check_against_report(trace, report(tare, path))


def test_compressed_copy_is_the_same(record, tare, tmp_path):
    for how in ("", "die"):
        path, copy = record(how), str(tmp_path / "copy.tare")
        tare("export", path, "--format", "tare", "-o", copy)
        one, two = Trace(path), Trace(copy)
        assert one.features == 0 and two.features == 1
        assert one.run_id == two.run_id
        p, q = only(one), only(two)
        assert from_trees(one, p) == from_trees(two, q)
        assert from_events(one, p) == from_events(two, q)
        assert (p.info, p.command, p.threads, p.pairs) == (q.info, q.command, q.threads, q.pairs)
        assert b"".join(body[:4] for body in bodies(copy)).find(b"\x28\xb5\x2f\xfd") >= 0, "no zstd frame in the copy"


def test_forked_child(record, tare):
    path = record("fork")
    trace = Trace(path)
    parent = next(p for p in trace.processes.values() if not p.info["parent_uid"])
    child = next(p for p in trace.processes.values() if p.info["parent_uid"] == parent.uid)
    found, _ = from_trees(trace, child)
    want = {("child",): (SCOPE, 1, None), ("child", "leaf"): (SCOPE, 2, None), ("child", "born later"): (SCOPE, 1, None)}
    want.update({("child", "leaf") + name: (COUNTER, 2, 2 * n) for name, n in LEAVES.items()})
    assert found == want
    assert from_events(trace, child)[0] == want
    assert child.info["parent_pid"] == parent.info["pid"] and child.info["site_base"] > 1
    assert not any(name == "leaf" for _, name, _, _ in child.sites.values()), "the parent had numbered it"
    assert from_trees(trace, parent)[0] == expected()
    check_against_report(trace, report(tare, path))


@pytest.mark.parametrize("mode", ["aggregate", "events"])
def test_modes(record, tare, mode):
    path = record(TARE_MODE=mode)
    trace = Trace(path)
    p = only(trace)
    assert p.info["mode"] == (1 if mode == "aggregate" else 2)
    if mode == "aggregate":
        assert not p.chunks
        assert from_trees(trace, p)[0] == expected()
    else:
        assert not [n for nodes in p.trees.values() for n in nodes[1:]]
        assert from_events(trace, p)[0] == expected()
        said = {path: n["count"] for path, n in flat(report(tare, path)["tree"])}
        assert said == {path: count for path, (_, count, _) in expected().items()}


def test_without_a_time_stamp_counter(record, tare):
    path = record(TARE_CLOCK_FALLBACK="1", LONG_NAP="1")
    trace = Trace(path)
    p = only(trace)
    assert p.info["tsc"] == 0 and trace.tick_ns(p) == 1
    assert from_trees(trace, p)[0] == from_events(trace, p)[0] == expected()
    nap = trace.paths(p, 0)[("main work", "long nap")]
    assert nap["total"] >= 600000000
    check_against_report(trace, report(tare, path))


def test_weighed_calls(compile_c, clean_env, tmp_path):
    """Calls whose inner scopes were left out are in off_count, and no event lies inside them."""
    program = compile_c(r"""
        #include <tare/tare.h>
        static volatile int v;
        static void in(void) { TARE_SCOPE("in"); for (int i = 0; i < 20; i++) v++; }
        static void mid(void) { TARE_SCOPE("mid"); for (int i = 0; i < 10; i++) in(); }
        int main(void) { for (int i = 0; i < 4000; i++) mid(); return 0; }
    """)
    path = str(tmp_path / "weighed.tare")
    subprocess.run([program], env={**clean_env, "TARE_TRACE": path}, check=True)
    trace = Trace(path)
    p = only(trace)
    mid, inner = (trace.paths(p, 0)[n] for n in (("mid",), ("mid", "in")))
    assert mid["off_count"] > 0
    assert mid["count"] + mid["off_count"] == 4000
    assert mid["off_scopes"] == 10 * mid["off_count"]
    assert inner["count"] == 10 * mid["count"]
    assert mid["pairs"] and all(scopes == 10 for _, _, scopes in mid["pairs"])
    events = trace.events(p, 0)
    weighed = [i for i, e in enumerate(events) if e[1] == "weighed"]
    assert len(weighed) == mid["off_count"]
    assert all(events[i + 1][0] == "end" and events[i + 1][3] == ("mid",) for i in weighed)


# ---- files that are not as they were written ----

def chunks(path):
    """[(offset, type, size)]"""
    data, out = open(path, "rb").read(), []
    at = struct.unpack_from("<I", data, 12)[0]
    while at < len(data):
        kind, stored = struct.unpack_from("<HBBI", data, at + 4)[::3]
        out.append((at, kind, 32 + stored))
        at += 32 + stored
    return out


def bodies(path):
    data = open(path, "rb").read()
    return [data[at + 32:at + size] for at, _, size in chunks(path)]


def rewrite(path, change):
    with open(path, "rb") as f:
        data = change(bytearray(f.read()))
    with open(path, "wb") as f:
        f.write(data)


def test_a_flipped_bit_costs_one_chunk(record, tare):
    path = record()
    whole = from_trees(Trace(path), only(Trace(path)))
    at, _, size = max((c for c in chunks(path) if c[1] == 4), key=lambda c: c[2])

    def flip(data):
        data[at + size // 2] ^= 4
        return data

    rewrite(path, flip)
    trace = Trace(path)
    assert trace.damaged_bytes == size
    assert from_trees(trace, only(trace)) == whole
    loss = report(tare, path)["loss"]
    assert loss["damaged_bytes"] == size and loss["damaged_chunks"] == 1


def test_a_gap_in_the_timeline(record, tare):
    """Without one of its chunks a thread's timeline goes on at the right depth."""
    path = record()
    middle = [c for c in chunks(path) if c[1] == 4][1]
    rewrite(path, lambda data: data[:middle[0]] + data[sum(middle[::2]):])
    trace = Trace(path)
    p = only(trace)
    found, _ = from_events(trace, p)  # asserts that it nests
    assert 0 < found[("worker", "leaf")][1] < 5000
    assert tare("export", path, "--format", "folded", "-o", "-").stdout


def test_a_torn_tail(record, tare):
    path = record()
    at, kind, size = chunks(path)[-1]
    assert kind == END
    rewrite(path, lambda data: data[:at + size - 1])
    trace = Trace(path)
    p = only(trace)
    assert trace.damaged_bytes == size - 1 and p.end is None
    assert from_trees(trace, p)[0] == expected()
    loss = report(tare, path)["loss"]
    assert loss["damaged_bytes"] == size - 1 and loss["missing_live"] == 1


def test_folded_twice_counts_once(record, tare):
    """A fold that was cut short and done again: trees, threads and ends come a second time."""
    path = record()
    before = report(tare, path)
    again = [c for c in chunks(path) if c[1] in (THREAD, TREE, 4)]

    def twice(data):
        return data + b"".join(data[at:at + size] for at, _, size in again) + data[slice(*span(chunks(path)[-1]))]

    def span(chunk):
        return chunk[0], chunk[0] + chunk[2]

    rewrite(path, twice)
    trace = Trace(path)
    assert from_trees(trace, only(trace))[0] == from_events(trace, only(trace))[0] == expected()
    after = report(tare, path)
    strip = {"threads": after["trace"]["threads"], "loss": after["loss"], "tree": after["tree"]}
    assert strip == {"threads": before["trace"]["threads"], "loss": before["loss"], "tree": before["tree"]}


def chunk(kind, process, body):
    head = struct.pack("<IHBBIIQII", 0x4B484354, kind, 0, 0, len(body), len(body), process, 0, 0)
    crc = crc32c(head + body)
    return head[:24] + struct.pack("<I", crc) + head[28:] + body


def test_a_newer_minor_version(record, tare):
    """A longer header, unknown chunks, more fields at the end of known ones: all that is known still reads."""
    path = record()
    uid = only(Trace(path)).uid

    def newer(data):
        data[10:16] = struct.pack("<HI", 4, 80)
        at, kind, size = chunks(path)[-1]
        assert kind == END
        end = chunk(END, uid, bytes(data[at + 32:at + size]) + b"\x05more")
        return data[:64] + bytes(16) + data[64:at] + chunk(77, uid, b"something") + end

    rewrite(path, newer)
    trace = Trace(path)
    assert trace.minor == 4 and trace.unknown_chunks == 1
    assert from_trees(trace, only(trace))[0] == expected()
    document = report(tare, path)
    assert document["loss"]["unknown_chunks"] == 1 and document["loss"]["damaged_chunks"] == 0
    check_against_report(trace, document)


@pytest.mark.parametrize("offset, value", [(8, 2), (16, 4), (23, 1)])
def test_refused(record, tare, offset, value):
    """Another major, an unknown feature bit, low or high: both readers refuse."""
    path = record()

    def change(data):
        data[offset] = value
        return data

    rewrite(path, change)
    with pytest.raises(ValueError):
        Trace(path)
    assert path in tare("report", path, status=2).stderr


def test_magic_and_checksum():
    assert MAGIC == bytes([0x89]) + b"TARE\r\n\x1a"
    assert crc32c(b"123456789") == 0xE3069283


WAITING = r"""
#include <signal.h>
#include <unistd.h>
#include <tare/tare.h>
int main(int argc, char **argv)
{
    tare_scope task, reader;
    (void)argv;
    tare_open(&task, tare_site_new(TARE_SITE_SCOPE, "task", "", 0));
    tare_pause(&task);
    tare_open(&reader, tare_site_new(TARE_SITE_SCOPE, "reader", "", 0));
    tare_pause(&reader);
    tare_resume(&task, 1);
    tare_end(&task);
    tare_resume(&reader, 0);
    tare_end(&reader);
    if (argc > 1) kill(getpid(), SIGKILL);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["", "die"])
def test_what_waits(compile_c, clean_env, tmp_path, how):
    path = tmp_path / "w.tare"
    subprocess.run([compile_c(WAITING)] + [how] * bool(how), env={**clean_env, "TARE_TRACE": str(path)}, timeout=60)
    trace = Trace(str(path))
    (p,) = trace.processes.values()
    assert trace.unknown_chunks == 0
    assert [(e[0], e[1], e[3][-1]) for e in trace.events(p, 0)] == [
        ("begin", "", "task"), ("end", "pause 1", "task"), ("begin", "", "reader"), ("end", "pause 2", "reader"),
        ("begin", "resume 1 waited", "task"), ("end", "", "task"), ("begin", "resume 2", "reader"), ("end", "", "reader")]
