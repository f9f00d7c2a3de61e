# SPDX-License-Identifier: MIT
"""The tools that guard the tree are themselves fed with planted errors: a guard that never fires is no guard."""

import base64
import glob
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import zipfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    return done.returncode, done.stdout


def tool(name, *args, **more):
    return run(os.path.join(ROOT, "tools", name), *args, **more)


# ---- check-layers, check-size, format ----------------------------------------------------------------

def test_layers_self_test():
    assert tool("check-layers", "--self-test") == (0, "")


def test_layers_planted(tmp_path):
    (tmp_path / "src" / "core").mkdir(parents=True)
    (tmp_path / "src" / "core" / "a.c").write_text('#include "cli/cli.h"\n')
    rc, out = tool("check-layers", str(tmp_path))
    assert rc == 1 and "src/core/a.c:1" in out and "cli/cli.h" in out


def function(lines, parameters=1):
    args = ", ".join("int a%d" % i for i in range(parameters))
    return "int f(%s)\n{\n%s}\n" % (args, "    g();\n" * lines)


@pytest.mark.parametrize("text, good", [
    (function(80), True), (function(81), False),
    (function(1, 5), True), (function(1, 6), False),
    ("int x;\n" * 800, True), ("int x;\n" * 801, False),
    ("/*%s*/\n" % ("x" * 116), True), ("/*%s*/\n" % ("x" * 117), False),
])
def test_size(tmp_path, text, good):
    (tmp_path / "a.c").write_text(text)
    rc, out = tool("check-size", "a.c", cwd=tmp_path)
    assert rc == (0 if good else 1), out


def test_size_wanted_only_with_v(tmp_path):
    (tmp_path / "a.c").write_text(function(41))
    assert "wanted" not in tool("check-size", "a.c", cwd=tmp_path)[1]
    rc, out = tool("check-size", "-v", "a.c", cwd=tmp_path)
    assert rc == 0 and "a.c:2: f: 41 lines in the function, wanted 40" in out


def test_format(tmp_path):
    shutil.copy(os.path.join(ROOT, ".clang-format"), tmp_path)
    good = "#define A_INIT {0}\n\nint a[] = {\n    1,  2,\n    10, 3,\n};\n\nint f(void)\n{\n    if (1) return 2;\n    return 1;\n}\n"
    path = tmp_path / "a.c"
    path.write_text(good)
    assert tool("format", "--check", "a.c", cwd=tmp_path) == (0, "")
    path.write_text(good.replace("    return 1", "  return  1"))
    rc, out = tool("format", "--check", "a.c", cwd=tmp_path)
    assert rc == 1 and "-  return  1;" in out
    assert tool("format", "a.c", cwd=tmp_path)[0] == 0
    assert path.read_text() == good


# ---- check-symbols -----------------------------------------------------------------------------------

SYMBOL_CASES = [
    ("int tare_x(void) { return 1; }", True),
    ("int tare_x(void) { return 1; } int leaked(void) { return 2; }", False),
    ("#include <stdlib.h>\nint tare_x(void) { exit(1); }", False),
    ("#include <stdlib.h>\nint tare_x(void) { abort(); }", False),
    ("#include <stdio.h>\nint tare_x(void) { return printf(\"%d\\n\", 1); }", False),
    ("#include <stdio.h>\nint tare_x(void) { return fputs(\"a\", stderr); }", False),
    ("#include <stdio.h>\nint tare_x(char *p, int n) { return snprintf(p, 9, \"%d\", n); }", True),
    ("int other; ", False),
]


@pytest.mark.parametrize("source, good", SYMBOL_CASES)
@pytest.mark.parametrize("kind", ["a", "so", "gpu", "agent"])
def test_symbols(tmp_path, source, good, kind):
    """The planted source is in one of the libraries, the others are clean. Those that are injected are called in by other names."""
    clean, entries = SYMBOL_CASES[0][0], {"gpu": "InitializeInjection", "agent": "pvalloc"}
    sources = {"clean": clean, "planted": source.replace("tare_x", entries.get(kind, "tare_x"))}
    sources |= {name: clean.replace("tare_x", entry) for name, entry in entries.items()}
    for name, text in sources.items():
        (tmp_path / (name + ".c")).write_text(text)
        assert run("gcc", "-fPIC", "-c", name + ".c", cwd=tmp_path)[0] == 0
    objects = {"a": "clean.o", "so": "clean.o", "gpu": "gpu.o", "agent": "agent.o", kind: "planted.o"}
    assert run("ar", "rcs", "libtare.a", objects["a"], cwd=tmp_path)[0] == 0
    assert run("gcc", "-shared", objects["so"], "-o", "libtare.so", cwd=tmp_path)[0] == 0
    for name in entries:
        assert run("gcc", "-shared", objects[name], "-o", f"libtare-{name}.so", cwd=tmp_path)[0] == 0
    rc, out = tool("check-symbols", str(tmp_path))
    assert rc == (0 if good else 1), out
    if kind == "so" and good:  # the wheel is for a glibc of 2012
        for name, known in (("arc4random", False), ("memfd_create", True)):
            assert run("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", "libtare.so", cwd=tmp_path, input=f"int {name}(); int tare_x(void) {{ return {name}(); }}")[0] == 0
            rc, out = tool("check-symbols", str(tmp_path))
            assert (rc == 0) == known and (name in out) != known, out


# ---- run-tests ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("status, text, counts", [
    (0, "1..2\nok 1 - a\nok 2 - b\n", (2, 0, 0)),
    (0, "ok 1 - a\nok 2 - b # SKIP no root\n1..2\n", (1, 0, 1)),
    (0, "1..2\nok 1 - a\nnot ok 2 # SKIP b\n", (1, 0, 1)),  # cmocka's way to skip
    (1, "1..2\nok 1 - a\nnot ok 2 - b\n", (1, 1, 0)),
    (0, "1..2\nnot ok 1 - a\nok 2 - b\n", (1, 1, 0)),
    (-6, "1..3\nok 1 - a\n", (1, 1, 0)),              # crashed half-way
    (0, "1..3\nok 1 - a\n", (1, 2, 0)),               # ended early, quietly
    (9, "1..1\nok 1 - a\n", (1, 1, 0)),               # all well, then a leak report
    (0, "1..0\n", (0, 1, 0)),                         # ran nothing
    (0, "1..0 # SKIP not here\n", (0, 0, 1)),
    (0, "1..1\nok 1\n1..1\nok 1\n", (2, 0, 0)),       # two cmocka groups
    (0, "no TAP at all\n", (1, 0, 0)),
    (3, "no TAP at all\n", (0, 1, 0)),
    ("timeout", "1..1\nok 1 - a\n", (1, 1, 0)),
    (77, "", (0, 0, 1)),
])
def test_tap(status, text, counts):
    r = load("run-tests").read_tap("x", status, text, "")
    assert (r.passed, r.failed, r.skipped) == counts


@pytest.mark.parametrize("status, text, counts", [
    (0, "..\n2 passed in 0.10s\n", (2, 0, 0)),
    (1, "F.\n1 failed, 1 passed, 3 skipped in 61.10s (0:01:01)\n", (1, 1, 3)),
    (2, "1 error in 0.1s\n", (0, 1, 0)),
    (5, "no tests ran in 0.01s\n", (0, 1, 0)),
    (-11, "..", (0, 1, 0)),
])
def test_pytest_summary(status, text, counts):
    r = load("run-tests").read_pytest("x", status, text, "")
    assert (r.passed, r.failed, r.skipped) == counts


def test_what_python_tests_need_is_made_before_them():
    """A make of each file's own costs more than some files do, and writes what another file or lane reads at that moment."""
    runner, needed = load("run-tests"), set()
    for path in glob.glob(os.path.join(ROOT, "tests", "python", "*.py")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        assert os.path.basename(path) == "made.py" or not re.search(r"""(run|Popen|check_output)\(\s*\[["']make["'], ["']-[sCk]""", text), path
        needed.update(goal for call in re.findall(r"made\.make\(([^)]*)\)", text) for goal in re.findall(r'"(build/[^"{]+)"', call))
    assert needed == set(runner.PYTHON_NEEDS)


def test_timeout_ends_the_whole_group(tmp_path):
    runner = load("run-tests")
    runner.LOGS = str(tmp_path)
    status, out, _ = runner.execute("x", ["sh", "-c", "echo begun; sleep 60 & sleep 60"], 1)
    assert (status, out) == ("timeout", "begun\n")
    status, out, cpu = runner.execute("x", ["sh", "-c", "echo begun; exit 3"], 60)
    assert (status, out) == (3, "begun\n") and 0 <= cpu < 60


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o700])
def test_folders_of_tests_may_be_entered_by_all(monkeypatch, mode):
    """Also where the tree lies below a folder of its owner's alone; and in the tree where they can be there."""
    with tempfile.TemporaryDirectory(prefix="tare-", dir="/tmp") as top:
        os.chmod(top, mode)
        runner, left = load("run-tests"), []
        monkeypatch.setattr(runner.atexit, "register", lambda f, *args, **more: left.append((f, args, more)))
        runner.LOGS = os.path.join(top, "tree", "test")
        folder = runner.environment("x/y")["TMPDIR"]
        assert os.path.basename(folder) == "x_y" and os.listdir(folder) == []
        assert runner.is_open_to_all(folder)
        assert folder.startswith(top) == (mode != 0o700) == (left == [])
        for remove, args, more in left:
            remove(*args, **more)
        assert not left or not os.path.exists(folder)


def test_a_suite_that_breaks_the_machine_fails(tmp_path, monkeypatch, capsys):
    runner = load("run-tests")
    runner.LOGS = str(tmp_path)
    good = lambda: [runner.Result("a", passed=1)]
    assert runner.run_suite("x", good, []) == (1, 0, 0)
    monkeypatch.setattr(runner, "machine_is_whole", lambda: False)
    assert runner.run_suite("x", good, []) == (1, 1, 0)
    assert runner.run_suite("x", lambda: None, []) == (0, 1, 0)
    assert "no device for everybody any more" in capsys.readouterr().out


def test_a_suite_without_tests_fails_and_one_without_files_does_not(tmp_path):
    runner = load("run-tests")
    runner.LOGS = str(tmp_path)
    assert runner.run_suite("x", lambda: [runner.Result("a")], []) == (0, 1, 0)
    assert runner.run_suite("x", lambda: None, []) == (0, 0, 0)
    assert runner.run_suite("x", lambda: 1 / 0, []) == (0, 1, 0)


@pytest.mark.parametrize("tries, before, counts, names", [
    (2, [], (1, 0, 0), ["x/luck"]),
    (1, [], (0, 1, 0), []),                              # --once
    (2, ["a"] * 6, (0, 1, 0), ["a"] * 6),                # too many already: no longer bad luck
])
def test_what_fails_has_one_second_try_and_is_named(tmp_path, capsys, tries, before, counts, names):
    runner = load("run-tests")
    runner.LOGS, runner.TRIES = str(tmp_path), tries
    mark = tmp_path / "mark"
    luck = ["sh", "-c", "test -e %s && exit 0; touch %s; echo the first time; exit 3" % (mark, mark)]
    assert runner.run_suite("x", lambda: [runner.test("x/luck", luck)], before) == counts
    assert before == names and "the first time" in capsys.readouterr().out


def test_lanes_are_beside_each_other_and_second_tries_alone(tmp_path, capsys):
    """Both lanes must be under way at once for either to end; what failed is tried again when nothing else runs."""
    runner = load("run-tests")
    runner.LOGS, unstable = str(tmp_path), []
    meet, lane = threading.Barrier(2, timeout=60), iter("ab")

    def suite():
        meet.wait()
        name = next(lane)
        again = "test -e %s/tried && exit 0; touch %s/tried; exit 3" % (tmp_path, tmp_path)
        return [runner.test("x/" + name, ["sh", "-c", again if name == "a" else "true"])]

    late = lambda: [runner.test("late", ["test", "-e", str(tmp_path / "tried")])]
    chosen = [("cli", suite, False, False), ("unit", suite, False, False), ("accuracy", late, False, False)]
    assert sorted(runner.run_chosen(chosen, unstable)) == [(1, 0, 0)] * 3 and unstable == ["x/a"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("accuracy")


def test_without_a_build_what_needs_it_fails(tmp_path):
    runner = load("run-tests")
    runner.LOGS = str(tmp_path)
    good, bad = lambda: [runner.Result("a", passed=1)], lambda: [runner.Result("a", failed=1)]
    chosen = [("build", bad, False, False), ("cli", good, True, False), ("format", good, False, False)]
    assert runner.run_chosen(chosen, []) == [(0, 1, 0), (0, 1, 0), (1, 0, 0)]


def test_what_fails_twice_has_failed(tmp_path):
    runner = load("run-tests")
    runner.LOGS, unstable = str(tmp_path), []
    assert runner.run_suite("x", lambda: [runner.test("x/never", ["false"])], unstable) == (0, 1, 0) and not unstable


def test_what_failed_is_shown_before_a_long_report(capsys):
    runner = load("run-tests")
    lines = ["ok 1 - a", "[ RUN      ] t", "[  ERROR   ] --- 0x2 != 0x1", *("leak %d" % k for k in range(2 * runner.MAX_SHOWN))]
    runner.show_failure(runner.Result("x", failed=1, output="\n".join(lines)))
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:3] == ["  | [  ERROR   ] --- 0x2 != 0x1", "  | (%d lines left out; all in build/test)" % (runner.MAX_SHOWN + 1)]
    assert len(shown) == 3 + runner.MAX_SHOWN and "ok 1" not in "".join(shown)


# ---- fuzz/replay.c -----------------------------------------------------------------------------------

def build_replay(folder, body):
    (folder / "target.c").write_text(
        "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)\n{\n%s\nreturn 0;\n}\n" % body)
    rc, out = run("gcc", "-g", "-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "target.c",
                  os.path.join(ROOT, "fuzz", "replay.c"), "-o", "replay", cwd=folder)
    assert rc == 0, out


@pytest.mark.parametrize("body, good", [
    ("(void)d; (void)n;", True),
    ("if (n == 3) return d[n];", False),                       # found by truncation
    ("if (n == 8 && memcmp(d, \"tare\", 4)) abort();", False),  # found by flipping
    ("(void)d; if (n == 8) { void *volatile p = malloc(9); p = 0; (void)p; }", False),  # a leak
])
def test_replay(tmp_path, body, good):
    build_replay(tmp_path, body)
    (tmp_path / "seed").write_bytes(b"tare\0\1\2\3")
    (tmp_path / "empty").write_bytes(b"")
    rc, out = run("./replay", "-o", ".", "seed", "empty", cwd=tmp_path)
    assert "1..2" in out and "ok 2 - empty (1 variants)" in out
    assert (rc == 0 and "\nok 1 - seed" in out) if good else (rc == 1 and "not ok 1 - seed" in out), out
    assert bool(list(tmp_path.glob("crash-seed-*"))) == (not good)


# ---- deps --------------------------------------------------------------------------------------------

def test_second_deps_is_silent_and_needs_no_network():
    no_network = dict(os.environ, http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9",
                      PIP_INDEX_URL="http://127.0.0.1:9/")
    assert tool("deps", "--quiet", env=no_network) == (0, "")


# Makes virtual environments of itself, and writes down what pip was asked for.
FAKE_PYTHON = """case "$1 $2" in
    "-m venv") /bin/mkdir -p "$3/bin" && /bin/cp "$0" "$3/bin/python" ;;
    "-m pip") [ -z "${LOG:-}" ] || echo "$*" >>"$LOG.pip" ;;
    -V*) echo "Python 3.11.2" ;;
esac"""


def deps_in_a_scratch_tree(folder, shims, *words):
    """Run a copy of tools/deps with small scripts in the place of system programs; nothing real is installed."""
    (folder / "tools").mkdir()
    (folder / "bin").mkdir()
    shutil.copy(os.path.join(ROOT, "tools", "deps"), folder / "tools")
    (folder / "requirements-dev.txt").write_text("")
    always = ["sh", "env", "cat", "cksum", "rm", "dirname", "id"]
    for name in always:
        os.symlink(shutil.which(name), folder / "bin" / name)
    for name, text in {"pkg-config": "", "fake-python": FAKE_PYTHON, **shims}.items():
        path = folder / "bin" / name
        path.unlink(missing_ok=True)
        path.write_text("#!/bin/sh\n%s\n" % text)
        path.chmod(0o755)
    env = {"PATH": str(folder / "bin"), "PYTHON": str(folder / "bin" / "fake-python"), "LOG": str(folder / "log")}
    done = run("/bin/sh", str(folder / "tools" / "deps"), *words, env=env)
    log = folder / "log"
    return done + (log.read_text() if log.exists() else "",)


ALL_BUT_VALGRIND = 'for p; do :; done; [ "$p" = valgrind ] && exit 1; printf installed'
RECORD = 'echo "$*" >>"$LOG"'


def test_deps_installs_exactly_what_is_missing(tmp_path):
    rc, out, log = deps_in_a_scratch_tree(
        tmp_path, {"dpkg-query": ALL_BUT_VALGRIND, "apt-get": RECORD, "id": "echo 0"})
    assert rc == 0 and "installing Debian packages: valgrind" in out, out
    assert log.splitlines() == ["update -qq", "install -y -qq --no-install-recommends valgrind"]


FOR_TESTS = {"chromium", "clang-14", "clang-tidy-14", "clang-format-14", "libclang-rt-14-dev", "python3.11-dbg", "valgrind", "postgresql", "libcmocka-dev",
             "g++", "btrfs-progs", "xfsprogs"}  # fmt: skip


def packages_installed(folder, *words):
    """What a system that has nothing would install: Debian packages, and words for pip."""
    shims = {"dpkg-query": "exit 1", "apt-get": RECORD, "id": "echo 0", "npm": ""}
    folder.mkdir()
    rc, out, log = deps_in_a_scratch_tree(folder, shims, *words)
    assert rc == 0, out
    return set(next(line for line in log.splitlines() if line.startswith("install")).split()[4:]), out + (folder / "log.pip").read_text()


def test_deps_of_the_demo_are_few(tmp_path):
    """`make demo` installs what it needs; what only tests need comes with `make test`."""
    demo, said = packages_installed(tmp_path / "demo", "demo")
    everything, _ = packages_installed(tmp_path / "test")
    assert demo < everything and everything - demo >= FOR_TESTS, everything - demo
    assert {"gcc", "make", "pkg-config", "libjansson-dev", "libsqlite3-dev", "python3-venv"} <= demo
    slow, _ = packages_installed(tmp_path / "all", "all")
    assert slow - everything == {"gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "mmdebstrap", "qemu-user-static"}
    assert "ONNX Runtime of requirements-dev.txt into .venv" in said and "-c requirements-dev.txt onnxruntime" in said
    assert "PyTorch" not in said and "-r " not in said


def test_deps_of_a_build_touch_no_tree(tmp_path):
    shims = {"dpkg-query": "exit 1", "apt-get": RECORD, "id": "echo 0"}
    rc, out, log = deps_in_a_scratch_tree(tmp_path, shims, "build")
    assert rc == 0 and "libjansson-dev" in log and "npm" not in log and "into" not in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "log", "requirements-dev.txt", "tools"]


def test_deps_of_tests_are_enough_for_the_demo(tmp_path):
    """After `make test` the demo has nothing to install, but not the other way round."""
    shims = {"dpkg-query": "printf installed", "apt-get": "exit 9", "npm": ""}
    rc, out, _ = deps_in_a_scratch_tree(tmp_path, shims)
    again = {"env": {"PATH": str(tmp_path / "bin"), "PYTHON": str(tmp_path / "bin" / "fake-python")}}
    assert rc == 0 and run(str(tmp_path / "tools" / "deps"), "--quiet", "demo", **again) == (0, "")
    os.rename(tmp_path / ".venv" / "stamp", tmp_path / ".venv" / "stamp-demo")
    assert run(str(tmp_path / "tools" / "deps"), "--quiet", "demo", **again) == (0, "")
    assert "Python packages of" in run(str(tmp_path / "tools" / "deps"), "--quiet", **again)[1]


def test_who_wants_which_packages():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as f:
        wants = dict(re.findall(r"^(demo|test|test-all|deps): .*\n(?:\t@tools/demo.*\n)?\t@tools/deps ?(.*)$", f.read(), re.M))
    assert wants == {"deps": "", "test": "--quiet", "test-all": "--quiet all", "demo": "--quiet demo"}


def test_deps_refuses_other_words(tmp_path):
    rc, out, _ = deps_in_a_scratch_tree(tmp_path, {}, "demmo")
    assert rc == 2 and "usage" in out


def test_deps_uses_sudo(tmp_path):
    rc, out, log = deps_in_a_scratch_tree(
        tmp_path, {"dpkg-query": ALL_BUT_VALGRIND, "apt-get": RECORD, "id": "echo 1000", "sudo": 'echo sudo >>"$LOG"; "$@"'})
    assert rc == 0, out
    assert log.splitlines()[::2] == ["sudo", "sudo"]


def test_deps_without_rights_says_what_to_do(tmp_path):
    rc, out, log = deps_in_a_scratch_tree(
        tmp_path, {"dpkg-query": ALL_BUT_VALGRIND, "apt-get": RECORD, "id": "echo 1000"})
    assert rc == 1 and "apt-get install valgrind" in out and log == ""


def test_deps_elsewhere_names_what_is_missing(tmp_path):
    rc, out, _ = deps_in_a_scratch_tree(tmp_path, {"gcc": "", "pkg-config": '[ "$2" != cmocka ]'})
    assert rc == 1 and " valgrind" in out and "cmocka(development files)" in out
    assert " gcc" not in out and "jansson" not in out


def test_deps_twice(tmp_path):
    shims = {"dpkg-query": "printf installed", "apt-get": "exit 9"}
    rc, out, _ = deps_in_a_scratch_tree(tmp_path, shims)
    assert rc == 0 and "into .venv" in out
    rc, out = run("/bin/sh", str(tmp_path / "tools" / "deps"), env={"PATH": str(tmp_path / "bin"), "PYTHON": str(tmp_path / "bin" / "fake-python")})
    assert rc == 0 and "into" not in out and out.count("all there") == 2


# ---- core/banned.h ------------------------------------------------------------------------------------

@pytest.mark.parametrize("use, instead", [('return getenv("TARE_TRACE") != 0;', "secure_getenv"), ('return atoi("1");', "strtoll"),
                                          ('return secure_getenv("TARE_TRACE") != 0;', None)])
def test_banned_calls_do_not_compile(tmp_path, use, instead):
    (tmp_path / "a.c").write_text("int f(void);\nint f(void)\n{\n    %s\n}\n" % use)
    rc, out = run(os.environ.get("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", "-I", os.path.join(ROOT, "src"), "-include", "core/banned.h",
                  "-fsyntax-only", str(tmp_path / "a.c"))
    assert (rc == 0) if instead is None else (rc != 0 and instead in out), out


# ---- man pages -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, said", [
    ("# tare bench\n\n- an item:\n  ```\n  - typed\n  ```\n- another\n", None),
    ("# tare bench\n\n| a | b |\n|---|---|\n| `x\\|y` | Größe ▁ \\n |\n", None),
    ("# tare bench\n\ntext\n\n```\nnever closed\n", ":5: a block that ``` opens, and nothing closes"),
    ("# tare bench\n\n- an item:\n  ```\n  never closed\n", ":4: a block that ``` opens, and nothing closes"),
    ("# tare nothing\n\ntext\n", ":1: tare-nothing is not in the table of commands, src/cli/command.c"),
    ("text\n", ":1: a page begins with its title, `# tare COMMAND`"),
])
def test_man(tmp_path, text, said):
    (tmp_path / "page.md").write_text(text)
    rc, out = tool("man", "1.2", str(tmp_path / "man"), str(tmp_path / "page.md"))
    if said:
        assert rc == 1 and out == "man: %s/page.md%s\n" % (tmp_path, said)
        return
    assert (rc, out) == (0, "")
    page = (tmp_path / "man" / "tare-bench.1").read_text()
    assert page.isascii() and page.startswith('.TH "TARE-BENCH" 1 "" "tare 1.2" "tare"\n')
    assert ("\n.RS 4\n.nf\n\\&\\- typed\n.fi\n.RE\n" if "item" in text else "\\fBx|y\\fR\nGr\\[u00F6]\\[u00DF]e \\[u2581] \\en\n") in page


# ---- what is handed out --------------------------------------------------------------------------------

def made_wheel(folder, mode, times):
    (folder / "tree" / "_bin").mkdir(parents=True)
    for name in ("b.py", "a.py", "_bin/tare"):
        path = folder / "tree" / name
        path.write_text(name)
        path.chmod(mode | (0o111 if name == "_bin/tare" else 0))
        os.utime(path, (times, times))
    rc, out = run(os.path.join(ROOT, ".venv", "bin", "python"), os.path.join(ROOT, "packaging", "portable", "wheel"), str(folder / "tree"),
                  "cp311-cp311-manylinux_2_17_x86_64", str(folder), env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    assert rc == 0, out
    return out.splitlines()[-1]


def test_the_same_tree_gives_the_same_wheel(tmp_path):
    first, second = made_wheel(tmp_path / "one", 0o600, 1), made_wheel(tmp_path / "two", 0o644, 10 ** 9)
    assert first.endswith("-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    with open(first, "rb") as a, open(second, "rb") as b:
        assert a.read() == b.read()
    with zipfile.ZipFile(first) as z:
        folder = next(n for n in z.namelist() if n.endswith("/RECORD"))[:-len("/RECORD")]
        text = {n: z.read(n) for n in z.namelist()}
        assert z.getinfo("tare/_bin/tare").external_attr >> 16 == 0o100755 and z.getinfo("tare/a.py").external_attr >> 16 == 0o100644
    rows = dict(line.split(",", 1) for line in text[folder + "/RECORD"].decode().splitlines())
    assert set(rows) == set(text) and all(
        row.startswith("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text[n]).digest()).decode().rstrip("=") + ",%d" % len(text[n]))
        for n, row in rows.items() if n != folder + "/RECORD")
    named = set(re.findall(rb"(?m)^License-File: (.*)$", text[folder + "/METADATA"]))
    assert named == {n.split("/licenses/")[1].encode() for n in text if "/licenses/" in n} and b"LICENSE" in named
    assert b"tare = tare._command:main" in text[folder + "/entry_points.txt"]


def test_the_list_of_what_is_carried(tmp_path):
    rc, out = run(os.path.join(ROOT, "packaging", "sbom"), "wheel", env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    said = json.loads(out)
    assert rc == 0 and (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.5")
    assert said["metadata"]["timestamp"] == "2023-11-14T22:13:20Z" and said["metadata"]["component"]["name"] == "tare"
    names = {c["name"]: c for c in said["components"]}
    assert {"jansson", "libyaml", "libzstd", "zlib", "sqlite3", "openssl", "preact", "uplot"} <= set(names)
    assert all(c["version"] and c["licenses"][0]["license"]["id"] and c["purl"].startswith("pkg:") for c in names.values())
    assert [d["dependsOn"] for d in said["dependencies"]] == [[c["bom-ref"] for c in said["components"]]]
    again = run(os.path.join(ROOT, "packaging", "sbom"), "wheel", env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    assert again == (0, out)
    rc, out = run(os.path.join(ROOT, "packaging", "sbom"), "deb", "--table")
    assert rc == 0 and "preact" in out and "openssl" not in out  # which is a package of its own there
    assert run(os.path.join(ROOT, "packaging", "sbom"))[0] == 1


def test_another_source_than_the_pinned_one_is_refused(tmp_path):
    """The script's own fetch(), given a mirror whose file was changed."""
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "x.dsc").write_text("changed")
    with open(os.path.join(ROOT, "packaging", "portable", "libraries"), encoding="utf-8") as f:
        text = f.read()
    script = "set -euo pipefail\nlist=sources mirrors=%s\n%s\n%s\n" % (
        tmp_path, re.search(r"^die\(\).*$", text, re.M).group(), re.search(r"^fetch\(\).*?^}$", text, re.M | re.S).group())
    rc, out = run("bash", "-c", script + 'fetch x.dsc "%s/got" %s' % (tmp_path, "0" * 64))
    assert rc == 1 and "another SHA-256 than sources names" in out and not (tmp_path / "got").exists()
    rc, out = run("bash", "-c", script + 'fetch y.dsc "%s/got"' % tmp_path)
    assert rc == 1 and "y.dsc: none of these archives has it" in out
    good = hashlib.sha256(b"changed").hexdigest()
    assert run("bash", "-c", script + 'fetch x.dsc "%s/got" %s' % (tmp_path, good))[0] == 0 and (tmp_path / "got").read_text() == "changed"


# ---- docs/security.md --------------------------------------------------------------------------------

def broken_promises(text):
    """Rows of the page's tables of promises whose tests are not there: each names files, each "title" stands in one of them."""
    bad, rows = [], 0
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| ") or len(cells) != 3 or cells[2] == "tested by":
            continue
        rows += 1
        files = re.findall(r"`([^`]+)`", cells[2])
        missing = [f for f in files if not os.path.isfile(os.path.join(ROOT, f))]
        held = "".join(open(os.path.join(ROOT, f), encoding="utf-8").read() for f in files if f not in missing)
        missing += [title for title in re.findall(r'"([^"]+)"', cells[2]) if title not in held]
        if missing or not files:
            bad.append((cells[0], missing))
    return bad, rows


def test_every_promise_names_its_test():
    with open(os.path.join(ROOT, "docs", "security.md"), encoding="utf-8") as f:
        bad, rows = broken_promises(f.read())
    assert not bad and rows >= 15
    planted = '| never | so | `tests/fault/guest.py`: "no such test" |\n| nor | so | `no/such/file.py` |\n| at all | so | somewhere |\n'
    assert len(broken_promises(planted)[0]) == 3


@pytest.mark.parametrize("flavor, bug, name", [
    ("asan", "free(p); p[0] = 1;", "heap-use-after-free"),
    ("asan", "p[0] = INT_MAX; p[0] += n;", "signed integer overflow"),
    ("tsan", "pthread_t t; pthread_create(&t, NULL, other, p); p[0]++; pthread_join(t, NULL);", "data race"),
])  # fmt: skip
def test_a_sanitizer_names_function_and_line(flavor, bug, name, tmp_path):
    """What each flavour is compiled with is enough for that, in a function that is inlined, too."""
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as f:
        flags = re.search(r"^FLAGS_%s +:= (.*)$" % flavor, f.read(), re.M).group(1).split()
    source = tmp_path / "planted.c"
    source.write_text("#include <limits.h>\n#include <pthread.h>\n#include <stdlib.h>\nvoid *other(void *p)\n{\n    ++*(int *)p;\n    return NULL;\n}\n"
                      "static inline void at_fault(int *p, int n)\n{\n    %s\n    (void)n;\n}\n"
                      "int main(int n, char **v)\n{\n    int *p = malloc(sizeof *p);\n    *p = n + !v;\n    at_fault(p, n);\n    return *p;\n}\n" % bug)  # fmt: skip
    rc, said = run("gcc", *flags, "-pthread", str(source), "-o", str(tmp_path / "planted"))
    assert rc == 0, said
    fixed = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"], check=False, capture_output=True).returncode == 0 else []
    rc, said = run(*fixed, str(tmp_path / "planted"), env={**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"})
    assert rc != 0 and name in said and "planted.c:11" in said and "at_fault" in said, said
