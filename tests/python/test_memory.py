# SPDX-License-Identifier: MIT
"""Recording of memory: the page of the format against the code; the agent in programs of known behaviour and in real ones. What a
program says and how it ends never changes."""

import collections
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys

import made
import pytest


def test_the_page_lists_the_records_as_the_code_has_them(root):
    rows = re.findall(r"RECORD\((\d+), (\w+),((?:\s*F\(\w+, \w+\))+)\s*\)", (root / "src/trace/memory_records.def").read_text())
    page = (root / "docs/trace-format.md").read_text().split("### MEMORY")[1]
    for number, name, fields in rows:
        told = re.search(rf"^\| {number} \| {name} \| (.*?) \| .+ \|$", page, re.M)
        assert told, name
        assert re.findall(r"`(\w+)`", told[1]) == re.findall(r"F\((\w+),", fields), name
    assert len(rows) == 18


# ---- the agent ----------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def helpers():
    return made.make("build/helpers/dump_memory", "build/helpers/memory_program")[0].parent


class Process:
    """What one process did, replayed: what it holds at its end by address, stacks as lists of frames, innermost first."""

    def __init__(self):
        self.held, self.allocated, self.maps, self.notes = {}, collections.Counter(), {}, []
        self.stacks, self.names, self.codes, self.modules, self.every, self.lost = {}, {}, {}, {}, None, [0, 0, 0]
        self.strange = 0

    def take(self, kind, fields, text):
        if kind == "START":
            self.every = fields[0]
        elif kind == "NAME":
            self.names[fields[0]] = text
        elif kind == "MODULE":
            self.modules[fields[0]] = (fields[3], text.split(" ", 1)[1])
        elif kind == "CODE":
            self.codes[fields[0]] = (fields[1], fields[2])
        elif kind == "STACK":
            self.stacks[fields[0]] = (*fields[1:], text)
        elif kind == "NOTE":
            self.notes.append(text)
        elif kind == "LOST":
            self.lost = fields
        elif kind == "ALLOC":
            self.strange += fields[1] in self.held
            self.held[fields[1]] = (fields[2], fields[3])
            self.allocated[fields[2]] += 1
        elif kind == "FREE":
            self.held.pop(fields[1], None)
        elif kind == "MAP":
            self.maps[fields[1]] = fields[2]

    def frames(self, number):
        out = []
        while number:
            parent, kind, where, at, text = self.stacks[number]
            if kind == 1:
                bias, path = self.modules.get(at, (0, "?"))
                out.append((path, where - bias))
            elif kind == 2:
                file, name = self.codes[where]
                out.append((self.names[file], self.names[name], int(text.split("=")[1])))
            number = parent
        return out

    def stays(self, size):
        return [stack for s, stack in self.held.values() if s == size]


def replay(helpers, trace):
    text = subprocess.run([helpers / "dump_memory", trace], capture_output=True, text=True, check=True).stdout
    processes, damaged, commands = collections.defaultdict(Process), 0, {}
    for line in text.splitlines():
        kind, process, *rest = line.split(" ")
        if kind == "DAMAGED":
            damaged = int(process)
        elif kind == "PROCESS":
            commands[int(process)] = rest
        else:
            n = next((i for i, f in enumerate(rest) if not f.isdigit()), len(rest))
            n = {"THREAD": 2, "NAME": 1, "MODULE": 4, "NOTE": 1, "START": 3}.get(kind, n)
            processes[int(process)].take(kind, [int(f) for f in rest[:n]], " ".join(rest[n:]))
    assert damaged == 0
    return [processes[i] for i in sorted(processes)]


@pytest.fixture
def preloaded(helpers, build, clean_env, tmp_path):
    """preloaded(command, every=0, status=0): run with the agent in front; the finished process and the replayed ones."""

    def call(command, every=0, status=0, **more):
        trace = tmp_path / "memory.tare"
        env = {**clean_env, "LD_PRELOAD": str(build / "libtare-agent.so"), "TARE_MEMORY_TRACE": str(trace), "TARE_MEMORY_EVERY": str(every)}
        done = subprocess.run([str(c) for c in command], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, **more)
        assert done.returncode == status, done.stderr
        return done, replay(helpers, trace) if trace.exists() else []

    return call


def functions(program, frames):
    addresses = [hex(at) for path, at in frames if path == str(program)]
    said = subprocess.run(["addr2line", "-f", "-e", program, *addresses], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[::2]


def test_each_way_to_allocate(preloaded, helpers):
    program = helpers / "memory_program"
    done, [p] = preloaded([program, "each"])
    assert done.stdout == "each: 0\n" and done.stderr == ""
    for size in (70001, 70021, 70007, 70003, 70035, 70016, 70009, 70011):
        assert len(p.stays(size)) == 1, size
    assert p.stays(70013) == p.stays(70017) == [] and p.allocated[70013] == p.allocated[70017] == 1
    assert 3 << 20 in p.maps.values()
    assert functions(program, p.frames(p.stays(70001)[0]))[:3] == ["innermost_function", "function_around_it", "each_way"]
    assert p.every == 0 and p.strange == 0


def test_blocks_that_threads_hand_over(preloaded, helpers):
    _, [p] = preloaded([helpers / "memory_program", "threads"])
    told = sum(n for size, n in p.allocated.items() if 71000 <= size < 71008)
    assert 16000 - p.lost[0] <= told <= 16000, "when all slots are in use, records are lost, and counted"
    assert p.lost[0] or (p.strange == 0 and not any(71000 <= size < 71008 for size, _ in p.held.values()))


def test_children_and_what_they_become(preloaded, helpers, tmp_path):
    _, processes = preloaded([helpers / "memory_program", "fork"])
    assert sorted(size for p in processes for size in (72001, 72003, 72005, 70001) for _ in p.stays(size)) == [70001, 72001, 72003, 72005]
    assert len(processes) == 4 and [f.name for f in tmp_path.iterdir()] == ["memory.tare"], "no live file is left"


def test_children_that_end_at_once_leave_nothing_behind(preloaded, tmp_path):
    """_exit() calls no destructor: each left its live file of 1 MiB. In a child of vfork() it is not the parent's end."""
    (tmp_path / "storm.py").write_text(
        "import os, subprocess\nfor i in range(20):\n    if not os.fork():\n        kept = bytearray(500000 + i)\n        os._exit(i)\n"
        "    assert os.waitstatus_to_exitcode(os.wait()[1]) == i\n"
        "try:\n    subprocess.run(['/there/is/none'], close_fds=False)\nexcept FileNotFoundError:\n    pass\n"
        "kept = bytearray(900001)\nos._exit(7)\n")
    _, processes = preloaded([os.path.realpath(sys.executable), "storm.py"], status=7)
    held = [size for p in processes for size, _ in p.held.values() if size > 499_999]
    assert sorted(size for size in held if 500_000 <= size <= 500_021) == [500_001 + i for i in range(20)] and 900_002 in held
    assert sorted(f.name for f in tmp_path.iterdir()) == ["memory.tare", "storm.py"]


def test_killed(preloaded, helpers):
    """Nothing that was published is lost."""
    _, [p] = preloaded([helpers / "memory_program", "killed"], status=-9)
    assert len(p.stays(76001)) == 5000


def test_jumps_out_of_signal_handlers(preloaded, helpers):
    done, _ = preloaded([helpers / "memory_program", "jumps"])
    assert done.stdout == "jumps: 0\n"


def test_allocations_that_fail_are_the_programs_own(preloaded, helpers):
    done, [p] = preloaded([helpers / "memory_program", "refused"])
    assert done.stdout == "1 1 1\nrefused: 0\n"
    assert len(p.stays(74001)) == 1 and 1 << 40 not in p.allocated and 0 not in p.held


def test_libraries_that_come_and_go(preloaded, helpers):
    program = helpers / "memory_program"
    _, [p] = preloaded([program, "libraries"])
    assert len(p.stays(75000)) == 20
    assert {tuple(functions(program, p.frames(s))[:3]) for s in p.stays(75000)} == {("innermost_function", "function_around_it", "libraries")}


def test_as_many_stacks_as_a_large_program_has(preloaded, helpers):
    """Each stack took a place for itself besides those of its frames: the table was full after 196,000 in all, and the rest had no stack."""
    _, [p] = preloaded([helpers / "memory_program", "paths"])
    assert p.allocated[77001] == 1 << 17 and p.lost == [0, 0, 0]
    assert len(p.frames(p.stays(77003)[0])) > 1


EARLY = """
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int main(void)
{
    void *(*grab)(size_t) = (void *(*)(size_t))dlsym(dlopen("./early.so", RTLD_NOW), "grab");
    for (int i = 0; i < 3; i++) {
        grab(81001 + 2 * i); /* one place, so that what was found out there at first is kept */
        nanosleep(&(struct timespec){0, 30000000}, 0);
    }
    return 0;
}
"""


def test_a_library_that_allocates_as_it_comes(preloaded, tmp_path, tare):
    """The libraries are looked at each 10 ms at most. One that came since had frames without a library for good, and ended each stack."""
    (tmp_path / "early.c").write_text("#include <stdlib.h>\nvoid *kept;\nvoid *grab(size_t n) { return kept = malloc(n); }\n")
    (tmp_path / "main.c").write_text(EARLY)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "early.c", "-o", "early.so"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-O1", "main.c", "-o", "main", "-ldl"], cwd=tmp_path, check=True)
    _, [p] = preloaded([tmp_path / "main"])
    paths = [path for path, _ in p.frames(p.stays(81005)[0])]
    assert paths[0].endswith("/early.so") and str(tmp_path / "main") in paths
    report = json.loads(tare("report", "--memory", "--json", tmp_path / "memory.tare").stdout)
    sites = [s for s in report["processes"][0]["sites"] if s["at_end"]["bytes"] in (81001, 81003, 81005, 81001 + 81003, 81003 + 81005, 81001 + 81003 + 81005)]
    assert sites and all(s["frames"][0]["name"] == "grab" for s in sites)


def test_a_sample_tells_how_much_there_is(preloaded, helpers):
    """64 MiB in blocks of 1 KiB: about 1024 samples, each standing for the inverse of its probability; 5 standard deviations."""
    every = 64 << 10
    _, [p] = preloaded([helpers / "memory_program", "many"], every=every)
    samples, chance = len(p.stays(1024)), 1 - math.exp(-1024 / every)
    estimate, deviation = samples / chance * 1024, math.sqrt((64 << 10) * (1 - chance) / chance) * 1024
    assert abs(estimate - (64 << 20)) < 5 * deviation
    assert p.every == every


def test_no_room_for_the_record(preloaded, helpers):
    """The program runs as if nobody looked, and nothing is left behind."""
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, 200 << 10))  # noqa: E731
    done, processes = preloaded([helpers / "memory_program", "threads"], preexec_fn=small)
    assert done.stdout == "threads: 0\n" and processes == []


def test_an_archive_that_may_not_grow(preloaded, helpers):
    """What has no room is counted, the rest is there."""
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1060 << 10, 1060 << 10))  # noqa: E731
    done, processes = preloaded([helpers / "memory_program", "grow"], preexec_fn=small)
    assert done.stdout == "grow: 0\n"
    [p] = processes
    assert 50000 < len(p.stays(1024)) < 400000


SCRIPT = """
def make(n):
    return [bytearray(80000 + 100 * i) for i in range(n)]

def around():
    kept = make(3)
    return kept, [{"a": i} for i in range(2000)]

kept = around()
import threading
def work():
    kept.append(bytearray(81000))
kept = list(kept)
t = threading.Thread(target=work)
t.start()
t.join()
print("fine")
import os
os._exit(0)
"""


def interpreters():
    """One of each version that is here; the first is the one that runs this."""
    found = {sys.version_info[:2]: sys.executable} if (3, 9) <= sys.version_info[:2] <= (3, 13) else {}
    pyenv = os.path.expanduser("~/.pyenv/versions")
    for name in sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else []:
        version, path = re.match(r"3\.(9|1[0-3])\.", name), os.path.join(pyenv, name, "bin/python3")
        if version and os.access(path, os.X_OK):
            found.setdefault((3, int(version[1])), path)
    return found


@pytest.mark.parametrize("version", sorted(interpreters()), ids=lambda v: "%d.%d" % v)
def test_frames_of_python(preloaded, tmp_path, version):
    (tmp_path / "script.py").write_text(SCRIPT)
    done, processes = preloaded([os.path.realpath(interpreters()[version]), "-S", "script.py"])
    [p] = [p for p in processes if any(81000 <= size <= 81100 for size, _ in p.held.values())]
    assert done.stdout == "fine\n" and p.notes == []

    def python(least):
        [stack] = [stack for size, stack in p.held.values() if least <= size <= least + 1]
        return [f[1:] for f in p.frames(stack) if len(f) == 3 and f[0].endswith("script.py")]

    inner = [("make", 3)] if version >= (3, 12) else [("make.<locals>.<listcomp>" if version >= (3, 11) else "<listcomp>", 3), ("make", 3)]
    assert python(80000)[-3:] == [("make", 3), ("around", 6), ("<module>", 9)] and python(80000)[:len(inner)] == inner
    assert python(81000) == [("work", 12)]
    small = [stack for size, stack in p.held.values() if size < 512 and ("around", 7) in [f[1:] for f in p.frames(stack) if len(f) == 3]]
    assert len(small) >= 2000, "objects of Python's own allocator are told too"


WANDER = """
import json, random, sys
random.seed(7)
kept, said = [], {}
def note():
    size = 200000 + 64 * len(kept)
    kept.append(bytearray(size)); f, stack = sys._getframe(1), []
    while f:
        stack.append((f.f_code.co_name, f.f_lineno)); f = f.f_back
    said[size + 1] = stack
def left(n):
    if random.random() < .4: note()
    if n: step(n - 1)
def right(n):
    for _ in range(random.randrange(3)):
        note()
        if n: step(n - 1)
def lazily(n):
    yield 1
    if n: step(n - 1)
    note()
    yield 2
def step(n):
    if len(kept) > 400: return
    if random.random() < .3: return list(lazily(n))
    eval(compile("left(n)" + " " * random.randrange(3), "made", "eval")) if random.random() < .2 else random.choice([left, right])(n)
    if random.random() < .3: right(n // 2)
while len(kept) < 400: step(14)
def down(n):
    if n % 9 == 0: note()
    if n: down(n - 1)
down(90)
print(json.dumps(said), flush=True)
import os
os._exit(0)
"""


@pytest.mark.parametrize("version", sorted(interpreters()), ids=lambda v: "%d.%d" % v)
def test_a_stack_is_told_as_it_is_however_it_came_about(preloaded, tmp_path, version):
    """Only what is not as in the stack before is looked up again: calls, returns, generators, code that is made and gone, more frames than are kept."""
    (tmp_path / "wander.py").write_text(WANDER)
    done, processes = preloaded([os.path.realpath(interpreters()[version]), "-S", "wander.py"])
    said = {int(size): [tuple(f) for f in stack] for size, stack in json.loads(done.stdout).items()}
    held = {size: stack for p in processes for size, stack in p.held.values() if size in said}
    assert len(held) == len(said) > 400
    of = {size: [tuple(f[1:]) for f in processes[-1].frames(stack) if len(f) == 3] for size, stack in held.items()}

    def bare(frames):  # without the line that note() has it on, and names as they are before 3.11
        return [(name.rsplit(".", 1)[-1], line) for name, line in frames]

    for size, frames in of.items():
        assert bare(frames)[1:] == bare(said[size])[:63], size
    assert any(len(stack) > 64 for stack in said.values())


SCOPED = """
#include <stdlib.h>
#include <tare/tare.h>
void *kept[100];
__attribute__((noinline)) static void get(size_t n) { static int i; kept[i++] = malloc(n); }
static void decode(void) { TARE_SCOPE("decode"); get(1910011); }
static void load(void) { TARE_SCOPE("load"); get(1920013); decode(); get(1930017); }
static void deep(int n) { TARE_SCOPE("deep"); if (n) deep(n - 1); else get(1940019); }
int main(void) { get(1900009); for (int i = 0; i < 3; i++) load(); deep(50); get(1950021); return 0; }
"""


@pytest.mark.parametrize("way", ["shared", "static"])
def test_scopes_around_an_allocation(tare, root, build, tmp_path, way):
    (tmp_path / "scoped.c").write_text(SCOPED)
    lib = [build / "libtare.a"] if way == "static" else [f"-L{build}", "-ltare", f"-Wl,-rpath,{build}"]
    subprocess.run(["gcc", "-O1", "-g", f"-I{root}/include", "scoped.c", "-o", "scoped", *lib, "-pthread"], cwd=tmp_path, check=True)
    tare("run", "-q", "--memory=all", "--trace", "s.tare", "--no-save", "--", tmp_path / "scoped")
    [p] = json.loads(tare("report", "--memory", "--json", "--by", "scope", "s.tare").stdout)["processes"]
    scopes = {g["name"]: g for g in p["groups"]}
    assert scopes["decode"]["at_end"]["bytes"] == 3 * 1910011
    assert scopes["load"]["at_end"]["bytes"] == 3 * (1920013 + 1930017)
    assert scopes["load"]["at_end_with_callees"]["bytes"] == 3 * (1910011 + 1920013 + 1930017)
    assert scopes["deep"]["at_end"]["bytes"] == 1940019, "more scopes than are told"
    assert scopes["outside of scopes"]["at_end"]["bytes"] >= 1900009 + 1950021


POOLS = """
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
static void *kept[400];
int main(void)
{
    for (int i = 0; i < 400; i++) memset(kept[i] = malloc(300000), 1, 300000);
    for (int i = 0; i < 200; i++) free(kept[i]);
    return kept[399] == 0;
}
"""
MALLOCS = [path for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2") if os.path.exists(path := f"/usr/lib/x86_64-linux-gnu/{name}")]


@pytest.mark.parametrize("library", MALLOCS, ids=os.path.basename)
@pytest.mark.parametrize("way", ["preloaded", "linked"])
def test_a_malloc_that_is_not_that_of_libc(tare, tmp_path, library, way):
    """What it maps for what it hands out was counted once more: 236 MiB were told as held where 95 were."""
    (tmp_path / "pools.c").write_text(POOLS)
    subprocess.run(["gcc", "-O1", "-w", "pools.c", "-o", "pools", *(["-Wl,--no-as-needed", library] if way == "linked" else [])], cwd=tmp_path, check=True)
    env = {"LD_PRELOAD": library} if way == "preloaded" else {}
    tare("run", "-q", "--memory=all", "--trace", "m.tare", "--no-save", "--", tmp_path / "pools", env=env)
    [p] = json.loads(tare("report", "--memory", "--json", "m.tare").stdout)["processes"]
    assert 400 * 300000 <= p["peak"]["bytes"] < 401 * 300000 and 200 * 300000 <= p["at_end"]["bytes"] < 201 * 300000


OWN = """
#include <stddef.h>
#include <string.h>
static char pool[8 << 20], *at = pool;
void *malloc(size_t n) { char *p = at; at += (n + 15) & ~15ul; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
int main(void) { for (int i = 1; i < 99; i++) memset(malloc(i), 1, i); return 3; }
"""


def test_a_malloc_of_the_program_itself_is_said(tare, tmp_path):
    """It was taken for ours: nothing was in the record, and nothing said why."""
    (tmp_path / "own.c").write_text(OWN)
    subprocess.run(["gcc", "-O1", "-w", "own.c", "-o", "own"], cwd=tmp_path, check=True)
    tare("run", "-q", "--memory=all", "--trace", "m.tare", "--no-save", "--", tmp_path / "own", status=3)
    assert "has its own malloc: what it hands out is not recorded" in tare("report", "--memory", "m.tare").stdout


BREAK = """
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>
int main(void)
{
    char *at = sbrk(3 << 20), *end = sbrk(0);
    memset(at, 1, 3 << 20);
    if (brk(end + (2 << 20)) || sbrk(-(1 << 20)) != end + (2 << 20)) return 1;
    return sbrk(0) != end + (1 << 20);
}
"""


def test_the_end_of_the_heap(preloaded, tmp_path):
    (tmp_path / "break.c").write_text(BREAK)
    subprocess.run(["gcc", "-O1", "break.c", "-o", "break"], cwd=tmp_path, check=True)
    _, [p] = preloaded([tmp_path / "break"])
    assert {3 << 20, 2 << 20} <= set(p.maps.values())


# What each is given to do, by a shell in an empty folder; the first word says what must be here for it.
REAL = {
    "sh": "echo a | cat; exit 3", "bash": "bash -c 'for i in 1 2 3; do echo $(echo $i); done; declare -A m; for i in {1..2000}; do m[$i]=x$i; done; echo ${#m[@]}'",
    "git": "git init -q . && git config user.email a@b && git config user.name c && seq 999 >f && git add f && GIT_AUTHOR_DATE='2020-01-01T00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00Z' "
           "git commit -q -m x && seq 7 1999 >f && git diff --stat && git log --oneline && git gc -q && git fsck",
    "gcc": "echo '#include <stdio.h>\nint main(void){puts(\"hi\");return 4;}' >a.c && gcc -O2 a.c -o a && ./a", "g++": "echo '#include <map>\n#include <iostream>\nint main(){std::map<int,int> m;"
           "for(int i=0;i<999;i++)m[i]=i;std::cout<<m.size();}' >a.cc && g++ -O1 a.cc -o a && ./a",
    "clang-14": "echo 'int main(void){return 5;}' >a.c && clang-14 -O2 a.c -o a && ./a", "cpp": "echo '#include <stdio.h>' | cpp | wc -l",
    "as": "echo '.globl f\nf: ret' | as -o f.o - && objdump -d f.o", "ld": "echo '.globl _start\n_start: ret' | as -o f.o - && ld f.o -o f && readelf -h f | grep Type",
    "make": "printf 'a: b\\n\\tcp b a\\nb:\\n\\tseq 9 >b\\n' >Makefile && make -j2 && make && cat a", "cmake": "cmake -E echo x && cmake -E md5sum /etc/passwd",
    "ninja": "printf 'rule c\\n command = cp $in $out\\nbuild b: c a\\n' >build.ninja && seq 9 >a && ninja && cat b", "rustc": "rustc --version",
    "python3": "python3 -c 'import json, subprocess; print(json.dumps({str(i): [i] * 3 for i in range(99)})); print(subprocess.run([\"echo\", \"x\"], capture_output=True))'",
    "python2": "python2 -c 'print(sorted([str(i) for i in range(50)]))'",
    "node": "node -e 'const a = Array.from({length: 1e5}, (_, i) => ({i})); console.log(a.map(x => x.i * 2).filter(x => x % 3 == 0).length); process.exit(6)'",
    "java": "java -version", "perl": "perl -e 'my %h = map { $_ => $_ * 2 } 1..9999; print scalar(keys %h), join(\",\", (sort { $a <=> $b } values %h)[0..5])'",
    "tclsh": "echo 'puts [expr 6 * 7]; exit 2' | tclsh", "awk": "awk 'BEGIN { for (i = 0; i < 9999; i++) a[i] = i; print length(a) }'",
    "sqlite3": "sqlite3 x.db 'create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) insert into t select i, hex(i) from n; "
               "create index x on t(b); select count(*), max(b) from t; vacuum; pragma integrity_check'",
    "initdb": "[ $(id -u) = 0 ] || { initdb -D d -A trust >/dev/null && echo 'select count(*) from pg_class where relkind = $$i$$;' | postgres --single -D d postgres; }", "psql": "psql --version; psql -h ./none -c 'select 1'",
    "openssl": "seq 999 | openssl sha256 && seq 99 | openssl enc -aes-128-cbc -K 00 -iv 00 2>/dev/null | openssl enc -d -aes-128-cbc -K 00 -iv 00 2>/dev/null | tail -1", "gpg": "gpg --homedir . --version | head -1",
    "ssh-keygen": "ssh-keygen -q -t ed25519 -N '' -f k -C x && ssh-keygen -y -f k >y && cut -d' ' -f1,2 k.pub >p && cut -d' ' -f1,2 y | cmp - p", "ssh": "ssh -V; ssh -o BatchMode=yes -o ConnectTimeout=1 -p 1 127.0.0.1",
    "tar": "mkdir d && seq 999 >d/a && tar czf t.gz d && rm -r d && tar xzf t.gz && cat d/a | md5sum", "gzip": "seq 99999 | gzip -9 | gunzip | md5sum", "bzip2": "seq 9999 | bzip2 | bunzip2 | md5sum",
    "xz": "seq 99999 | xz -1 -T2 | xz -d | md5sum", "zstd": "seq 99999 | zstd -q -T2 | zstd -dq | md5sum", "zip": "seq 999 >a && zip -q z a && unzip -p z a | md5sum",
    "diff": "seq 999 >a; seq 5 1005 >b; diff a b", "sort": "seq 99999 | sort -R --random-source=/dev/zero --parallel=2 | sort -n | md5sum", "grep": "seq 99999 | grep -c -E '(12|34)+5'", "sed": "seq 999 | sed -n 's/9\\(.\\)/<\\1>/gp' | tail -3",
    "find": "find /etc -maxdepth 1 -name 'p*' | sort | xargs -n 1 basename", "ls": "ls -l /etc/passwd", "env": "env printf x", "id": "id -u", "date": "date -d @0 -u", "tr": "seq 99 | tr 1 b | tail -1", "wc": "wc -l /etc/passwd",
    "cut": "cut -d: -f1 /etc/passwd", "join": "seq 9 >a; join a a", "factor": "factor 360 1234567890123", "od": "seq 9 | od -c", "md5sum": "seq 999 | md5sum", "base64": "seq 999 | base64 | base64 -d | md5sum", "split": "seq 999 | split -l 100 - p && cat p* | md5sum",
    "dd": "dd if=/dev/zero bs=1M count=8 status=none | md5sum", "du": "seq 9 >a; du -b a", "shuf": "seq 99 | shuf --random-source=/dev/zero", "bc": "echo '2 ^ 2000' | bc", "jq": "jq -n '[range(999)] | map(. * 2) | add'",
    "file": "file /etc/passwd", "vim": "seq 99 >f && vim -es -u NONE -c '%s/1/x/g' -c 'wq' f; md5sum f", "groff": "printf '.TH X 1\\n.SH A\\nb\\n' | groff -man -Tascii", "gdb": "gdb -nx -batch -ex 'print 6 * 7' 2>&1 | grep -v 'signal 7\\|handler\\|^$'",
    "strace": "strace -V | head -1", "valgrind": "valgrind --version", "curl": "curl -s http://127.0.0.1:1/; echo $?", "pkg-config": "pkg-config --version", "dpkg": "dpkg --version; dpkg -L dpkg | head -5", "convert": "convert -size 64x64 xc:red -resize 32x32 txt:- | head -3",
    "ps": "ps -o comm= -p 1", "m4": "echo 'define(a, b)a' | m4", "busybox": "busybox echo x", "ruby": "ruby -e 'p (1..999).map { |i| i.to_s }.sum(&:size)'", "redis-cli": "redis-cli --version",
}


@pytest.mark.parametrize("name", [name for name in REAL if shutil.which(name)])
def test_real_programs_are_as_without_it(build, clean_env, tmp_path, name):
    def ran(env):
        work = tmp_path / "work"
        work.mkdir()
        done = subprocess.run(["sh", "-c", REAL[name]], env={**clean_env, **env}, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
        shutil.rmtree(work)
        return done.returncode, done.stdout, done.stderr

    status, out, err = ran({"LD_PRELOAD": str(build / "libtare-agent.so"), "TARE_MEMORY_TRACE": str(tmp_path / "t.tare"), "TARE_MEMORY_EVERY": "0"})
    assert (status, out, err) == ran({})


# ---- tare run --memory --------------------------------------------------------------------------------

def test_run(tare, helpers, tmp_path):
    said = tare("run", "--memory", "--memory-every", "1000", "--trace", "m.tare", "--no-save", "-q", "--", helpers / "memory_program", "each")
    assert said.stdout == "each: 0\n" and said.stderr == ""
    [p] = replay(helpers, tmp_path / "m.tare")
    assert p.every == 1000 and len(p.stays(70001)) == 1
    assert [f.name for f in tmp_path.iterdir()] == ["m.tare"]


def test_threads_that_free_first_are_sampled_like_others(tare, tmp_path):
    """Their first record came before their first draw: then every allocation was noted, each for many (1.2 GiB where 20 MiB are true)."""
    (tmp_path / "threads.py").write_text(
        "import threading\nkept = []\ndef work(old):\n    del old[:]\n    kept.append([bytes(1000) for _ in range(200)])\n"
        "for _ in range(100):\n    mine = [bytes(2000) for _ in range(20)]\n"
        "    t = threading.Thread(target=work, args=(mine,)); del mine; t.start(); t.join()\n")
    tare("run", "--memory", "--memory-every", "65536", "--trace", "m.tare", "--no-save", "-q", "--", sys.executable, "threads.py")
    shown = json.loads(tare("report", "--memory", "--json", "m.tare").stdout)
    assert 15e6 < shown["processes"][0]["peak"]["bytes"] < 40e6  # 100 x 200 x 1,033 bytes and the interpreter; some 300 samples


def test_run_with_each_allocation(tare, helpers, tmp_path):
    tare("run", "--memory=all", "--trace", "m.tare", "--no-save", "-q", "--", helpers / "memory_program", "each", env={"LD_PRELOAD": ""})
    [p] = replay(helpers, tmp_path / "m.tare")
    assert p.every == 0


def test_programs_that_cannot_be_looked_into_are_told(tare, tmp_path):
    (tmp_path / "s.c").write_text("int main(void) { return 0; }")
    if subprocess.run(["gcc", "-static", "s.c", "-o", "s"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no static libc here")
    said = tare("run", "--memory", "--trace", "m.tare", "--no-save", "-q", "--", "./s")
    assert "./s is statically linked" in said.stderr


def test_words_that_make_no_sense(tare):
    assert "`all`" in tare("run", "--memory=most", "--", "true", status=2).stderr
    assert "--trace" in tare("run", "--memory", "--no-save", "--", "true", status=2).stderr


SYMBOL_PROGRAM = """
#include <stdlib.h>
void *kept;
static inline __attribute__((always_inline)) void *inner_get(size_t n) { return malloc(n); }
__attribute__((noinline)) static void outer_get(size_t n) { kept = inner_get(n); }
int main(void) { outer_get(1 << 20); return 0; }
"""


def test_names_of_native_functions(tare, tmp_path):
    """Names, lines and inlined functions in the report; a program that was built anew is not taken for the one that ran."""
    source, program, trace = tmp_path / "grows.c", tmp_path / "grows", tmp_path / "m.tare"
    source.write_text(SYMBOL_PROGRAM)
    build = ["gcc", "-g", "-O1", "-Wl,--build-id", "-o", str(program), str(source)]
    subprocess.run(build, check=True)
    tare("run", "--memory=all", "--trace", str(trace), "--no-save", "-q", "--", program)
    shown = json.loads(tare("report", "--memory", "--json", str(trace)).stdout)
    site = max(shown["processes"][0]["sites"], key=lambda s: s["allocated"]["bytes"])
    if any("libdw" in n for n in shown["processes"][0]["notes"]):
        pytest.skip("no libdw here")
    frames = [(f["name"], os.path.basename(f["source"] or ""), f["line"], f["inlined"]) for f in site["frames"][:3]]
    assert frames == [("inner_get", "grows.c", 4, True), ("outer_get", "grows.c", 5, False), ("main", "grows.c", 6, False)]
    assert "inner_get grows.c:4 < outer_get grows.c:5 < main grows.c:6" in tare("report", "--memory", "--by", "stack", str(trace)).stdout
    source.write_text(SYMBOL_PROGRAM.replace("1 << 20", "1 << 21"))
    subprocess.run(build, check=True)
    again = tare("report", "--memory", str(trace)).stdout
    assert "another build id" in again and "inner_get" not in again


# ---- tare compare --memory ----------------------------------------------------------------------------

KEEPER = """
import sys, time
def table(n): return [bytearray(65536) for _ in range(n)]
def grow(kept): kept.append(bytearray(65536))
held, kept = table(int(sys.argv[1])), []
for i in range(int(sys.argv[2])):
    grow(kept)
    time.sleep(0.01)
"""


def compared(tare, *args, status):
    document = json.loads(tare("compare", "--memory", "--json", "--close-runs", *args, status=status).stdout)
    return document, {m["metric"]: m for m in document["cases"][0]["metrics"]}


def test_what_holds_more_and_what_grows_is_named(tare, tmp_path):
    (tmp_path / "keeper.py").write_text(KEEPER)
    sides = {"base": (200, 0), "more": (220, 0), "leak": (200, 150)}
    for i in range(3):
        for name, words in sides.items():
            tare("run", "--memory=all", "--trace", f"{name}{i}.tare", "--no-save", "-q", "--", sys.executable, "keeper.py", *words)

    def side(option, name):
        return [word for i in range(3) for word in (option, f"{name}{i}.tare")]

    document, rows = compared(tare, *side("--base", "base"), *side("--new", "more"), status=1)
    site = next(m for name, m in rows.items() if name.startswith("site.peak table"))
    assert document["verdict"] == site["verdict"] == "regressed" and abs(site["ratio"]["value"] - 1.1) < 0.005
    assert not [name for name in rows if name.startswith("site.growth")]
    document, rows = compared(tare, *side("--base", "base"), *side("--new", "leak"), status=1)
    site = next(m for name, m in rows.items() if name.startswith("site.growth grow"))
    assert site["verdict"] == "regressed" and site["new"]["value"] > 0
    document, rows = compared(tare, "base0.tare", "base1.tare", status=0)
    assert document["verdict"] == "unverified" and "runs" in rows["memory.peak"]["why"]
