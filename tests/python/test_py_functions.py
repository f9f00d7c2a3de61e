# SPDX-License-Identifier: MIT
"""tare.functions from outside: python -m tare functions, its files, the page, greenlets."""

import json
import marshal
import os
import pstats
import re
import subprocess
import sys

import pytest

PROGRAM = """
    import sys
    def work(n):
        return sum(helper(i) for i in range(n))
    def helper(i):
        return len(str(i))
    if __name__ == "__main__":
        print(work(int(sys.argv[1])), sys.argv[1:])
"""


@pytest.fixture
def program(tmp_path):
    import textwrap

    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def calls(path, name):
    return sum(row[1] for key, row in pstats.Stats(str(path)).stats.items() if key[2] == name)


def test_a_script_with_arguments(python, program):
    done = python("-m", "tare", "functions", "--sort", "calls", "--rows", "3", program, "12", "--sort", "x")
    assert done.stdout.startswith("14 ['12', '--sort', 'x']\n")
    assert "program.py:5(helper)" in done.stdout
    assert "self: tare's own cost" in done.stdout
    assert "runpy" not in done.stdout


def test_a_module(python, program, tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text("import sys\nfrom . import other\nother.f()\nprint(__name__, __package__, sys.argv[1:])\n")
    (folder / "other.py").write_text("def f():\n    pass\n")
    done = python("-m", "tare", "functions", "-o", "out.prof", "-m", "pack", "a", "-o")
    assert done.stdout == "__main__ pack ['a', '-o']\n"
    assert calls(tmp_path / "out.prof", "f") == 1


@pytest.mark.parametrize("options", [(), ("--fast",), ("--no-exact-c",), ("--clock", "cpu")])
def test_counts(python, program, tmp_path, options):
    python("-m", "tare", "functions", *options, "-o", "out.prof", program, "50")
    assert calls(tmp_path / "out.prof", "helper") == 50
    assert calls(tmp_path / "out.prof", "<built-in method builtins.len>") == (0 if "--fast" in options else 50)


def test_exit_status_and_traceback_are_the_programs(python, program, tmp_path):
    program.write_text("import sys\nsys.exit(5)\n")
    assert "program.py:1(<module>)" in python("-m", "tare", "functions", program, status=5).stdout
    program.write_text("def f():\n    1 / 0\nf()\n")
    done = python("-m", "tare", "functions", program, status=1)
    assert "program.py:1(f)" in done.stdout
    assert "/tare/_" not in done.stderr and "_program.py" not in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_children_do_not_write(python, program, tmp_path):
    program.write_text("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n")
    done = python("-m", "tare", "functions", program)
    assert done.stdout.count("self: tare's own cost") == 1
    assert done.stderr.count("tare: 1 child process of this program") == 1


@pytest.mark.parametrize("starts, said", [
    ("subprocess.run(['true']); subprocess.run(['true']); subprocess.Popen('exit 0', shell=True).wait()", "3 child processes of this program (2 true, sh): "),
    ("subprocess.run([sys.executable, '-c', ''], close_fds=False)", f"1 child process of this program ({os.path.basename(sys.executable)}): "),
    ("os.system('true'); os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)", "2 child processes of this program (sh, true): "),
    ("os.waitpid(os.fork() or os._exit(0), 0); subprocess.run(['true'])", "2 child processes of this program (true): "),
    ("m = multiprocessing.get_context('fork'); p = m.Process(); p.start(); p.join(); m.Process(); subprocess.run(['true'])",
     "2 child processes of this program (true): "),  # one of the two was never started
    ("m = multiprocessing.get_context('spawn').Process(); m.start(); m.join(); os.waitpid(os.fork() or os._exit(0), 0)",
     "3 child processes of this program (resource_tracker): "),
    ("m = multiprocessing.get_context('forkserver').Process(); m.start(); m.join()",
     "2 child processes of this program (resource_tracker, forkserver), and those that the fork server started: "),
    ("subprocess.list2cmdline(['true'])", None),
])
@pytest.mark.parametrize("options", [[], ["--fast"], ["-o", "x.html"]])
def test_programs_that_were_started_are_named(python, program, starts, said, options):
    program.write_text(f"import multiprocessing, os, subprocess, sys\nif __name__ == '__main__':\n    {starts}\n")
    done = python("-m", "tare", "functions", *options, program)
    assert (f"tare: {said}not in this profile, only the first process is\n" in done.stderr) if said else ("child" not in done.stderr)


def test_spawned_processes_find_main(python, program):
    program.write_text(
        "import multiprocessing\ndef f(x):\n    return x * 2\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(f, [1, 2]))\n"
    )
    done = python("-m", "tare", "functions", "--rows", "1", program)
    assert "[2, 4]" in done.stdout and "2 child processes of this program (resource_tracker): " in done.stderr


def test_a_text_file_has_the_order_and_rows_asked_for(python, program, tmp_path):
    python("-m", "tare", "functions", "-s", "calls", "--rows", "2", "-o", "out.txt", program, "50")
    text = (tmp_path / "out.txt").read_text()
    assert "Ordered by: calls" in text and len(re.findall(r"^ +\d+ +(?:< )?[\d.]+ [mun]?s ", text, re.M)) == 2


@pytest.mark.parametrize("args,status,why", [
    (("missing.py",), 2, "tare: missing.py: No such file or directory\n"),
    (("-m", "no_such_module_here"), 2, "No module named"),
    ((), 2, "name a script"),
    (("--sort", "wrong", "x.py"), 2, "choose one of"),
    (("-o", "x.unknown", "x.py"), 2, "ending must say what to write"),
    (("-o", "/nowhere/x.prof", "x.py"), 2, "--output: /nowhere/x.prof: the folder is missing"),
])
def test_bad_input(python, args, status, why):
    assert why in python("-m", "tare", "functions", *args, status=status).stderr


def test_output_that_becomes_unwritable(python, program):
    program.write_text("import os\nos.mkdir('x.prof')\n")
    assert "x.prof" in python("-m", "tare", "functions", "-o", "x.prof", program, status=3).stderr


def test_a_reader_that_goes_away_is_no_fault(package, program, clean_env):
    command = [sys.executable, "-m", "tare", "functions", program, "40"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, env={**clean_env, "PYTHONPATH": str(package)}, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_files(python, program, tmp_path):
    for name in ("x.txt", "x.json", "x.folded", "x.prof"):
        python("-m", "tare", "functions", "-o", name, program, "40")
    assert "ncalls" in (tmp_path / "x.txt").read_text()
    for line in (tmp_path / "x.folded").read_text().splitlines():
        stack, ns = line.rsplit(" ", 1)
        assert stack.startswith("MainThread;<built-in method builtins.exec>") and int(ns) > 0
    scope = json.loads((tmp_path / "x.json").read_text())
    thread = scope["profiles"][0]
    assert thread["type"] == "sampled" and len(thread["samples"]) == len(thread["weights"])
    assert thread["endValue"] == sum(thread["weights"])
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    assert all(number < len(names) for stack in thread["samples"] for number in stack)
    assert "helper" in names
    with open(tmp_path / "x.prof", "rb") as prof:
        for callers in (row[4] for row in marshal.load(prof).values()):
            assert all(len(caller) == 4 for caller in callers.values())


def test_the_pages_document(python):
    done = python("""
        import json, threading, tare
        from tare import _answers
        def f(): g()
        def g(): pass
        with tare.functions() as prof:
            f()
            thread = threading.Thread(target=f, name="</script>")
            thread.start(); thread.join()
        print(json.dumps(_answers.profile_document(prof, "x")))
    """)
    document = json.loads(done.stdout)
    assert document["schema"] == "tare.profile/1" and document["unit"] == "ns"
    nodes, frames = document["nodes"], document["frames"]
    assert {len(column) for column in nodes.values()} == {len(nodes["parent"])}
    assert nodes["parent"][0] == -1 and all(-1 < parent < i for i, parent in enumerate(nodes["parent"]) if i)
    assert "</script>" in [frames["name"][frame] for frame in nodes["frame"]]
    names = [frames["name"][frame] for frame in nodes["frame"]]
    assert sum(calls for name, calls in zip(names, nodes["calls"]) if name == "g") == 2
    measured = document["measured"]
    assert (measured["processes"], measured["threads"], measured["lost"]) == (1, 2, 0)
    assert measured["duration_ns"] > 0 and (measured["own_ns"] is None or measured["own_ns"] > 0)


def test_the_page(python, tmp_path):
    done = python("""
        import json, re, tare
        from tare import _answers
        _answers._PAGE = "page.html"
        with tare.functions() as prof:
            exec(compile("def f(): pass\\nf()", "</script><b>", "exec"))
        try:
            prof.flame("out.html")
        except RuntimeError as missing:
            print(missing)
        open("page.html", "w").write('<i><script id="tare-data" type="application/json">null</script></i>')
        prof.flame("out.html", title="a<b")
        text = open("out.html").read()
        data = re.fullmatch('<i><script id="tare-data" type="application/json">(.*)</script></i>', text).group(1)
        assert "<" not in data
        page = json.loads(data)
        print(page["schema"], page["title"], [(item["kind"], item["name"]) for item in page["items"]])
    """)
    assert done.stdout == ("this package was built without the report page, which needs node: install node, then pip install . again\n"
                           "tare.page/1 a<b [('profile', 'a<b')]\n")


def test_the_page_is_named_after_the_program(python, program, package):
    if not (package / "tare" / "page.html").exists():
        pytest.skip("built without the report page")
    python("-m", "tare", "functions", "-o", "x.html", program, "40")
    assert f'"title":"{program.name}"' in (program.parent / "x.html").read_text()


def test_notebooks(python):
    done = python("""
        import tare
        with tare.functions() as prof:
            (lambda: 1)()
        print(prof._repr_html_())
    """)
    assert "&lt;lambda&gt;" in done.stdout and "<lambda>" not in done.stdout


def test_greenlets(python):
    pytest.importorskip("greenlet")
    done = python("""
        import greenlet, time, tare
        def a():
            for _ in range(5):
                time.sleep(0.001)
                other.switch()
        def b():
            while True:
                leaf()
                main.switch()
        def leaf():
            time.sleep(0.03)
        def run():
            global main, other
            main, other = greenlet.getcurrent(), greenlet.greenlet(b)
            a()
        for options in ({}, {"fast": True}):
            with tare.functions(**options) as prof:
                run()
            rows = {f.name: f for f in prof.functions()}
            assert rows["leaf"].calls == 5 and rows["a"].calls == 1, rows
            assert rows["leaf"].total_ns > 0.1e9, rows["leaf"]
            assert rows["a"].total_ns < rows["leaf"].total_ns, rows  # its own sleep, not b's
            assert list(prof.stats[rows["leaf"].key][4]) == [rows["b"].key]
        assert greenlet.gettrace() is None
    """)
    assert done.stderr == ""


# ---- the tree of a terminal ----

class MadeUp:
    """A profile of known paths: (depth, file, line, name, self ns)."""

    def __init__(self, *paths):
        from tare._functions import Tree

        labels, parent, function, own, stack = [], [-1], [-1], [0], [0]
        for depth, file, line, name, ns in paths:
            stack[depth + 1:] = [len(parent)]
            parent.append(stack[depth])
            labels.append((file, line, name))
            function.append(len(labels) - 1)
            own.append(ns)
        total = list(own)
        for node in range(len(parent) - 1, 0, -1):
            total[parent[node]] += total[node]
        self.tree = Tree("main", 1, 1, labels, parent, function, [1] * len(parent), own, total)

    def trees(self):
        return [self.tree]


def tree_of(*paths, **options):
    from tare import _calls_text

    text = _calls_text.tree_text(MadeUp(*paths), lambda ns: f"{ns:.0f}", **options)
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_tree_folds_what_libraries_call_within_themselves(tmp_path, monkeypatch):
    import json.decoder

    monkeypatch.chdir(tmp_path)
    own = str(tmp_path / "own.py")
    paths = ((0, own, 1, "main", 100), (1, json.__file__, 3, "loads", 50), (2, json.decoder.__file__, 4, "decode", 150),
             (3, own, 9, "hook", 200), (4, "~", 0, "<built-in method builtins.sum>", 400), (1, own, 20, "small", 5), (1, own, 30, "last", 95))
    assert tree_of(*paths) == [
        "100.0 % 1000 main", "100.0 % 1000 `- main own.py:1", "80.0 % 800 |- loads json/__init__.py:3", "60.0 % 600 | `- hook own.py:9",
        "40.0 % 400 | `- built-in method builtins.sum", "9.5 % 95 `- last own.py:30"]
    assert "75.0 % 750 | `- decode json/decoder.py:4" in tree_of(*paths, everything=True)
    assert tree_of(*paths, rows=2)[-1] == "... and 4 lines more (--all)"


def test_the_same_function_along_one_path_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = str(tmp_path / "own.py")
    assert tree_of((0, own, 1, "f", 100), (1, own, 5, "g", 100), (0, own, 1, "f", 200))[1:] == ["100.0 % 400 `- f own.py:1", "25.0 % 100 `- g own.py:5"]
    deep = tuple((depth, own, 1, "f", 1) for depth in range(900))
    assert len(tree_of(*deep)) == 41  # of all that is below, the beginning
    assert tree_of() == []


def test_the_command_shows_a_tree_and_twenty_rows(python, program):
    program.write_text("def f():\n    return sum(range(300000))\n" + "".join(f"def g{i}():\n    pass\ng{i}()\n" for i in range(40)) + "f()\n")
    done = python("-m", "tare", "functions", program)
    assert re.search(r"^ *\d+\.\d % +\S+ [mun]?s +`- f  \S*program\.py:1$|`- f  ", done.stdout, re.M)
    assert len(re.findall(r"^ +\d+ +(?:< )?[\d.]+ [mun]?s ", done.stdout, re.M)) == 20
    assert "functions more" in done.stdout and "functions more" not in python("-m", "tare", "functions", "--rows", "0", program).stdout
