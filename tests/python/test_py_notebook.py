# SPDX-License-Identifier: MIT
"""%load_ext tare in a real IPython shell: cells and lines, what they show, what they refuse."""

import pytest

pytest.importorskip("IPython")

SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "tare")
shell.run_cell("def step(n):\\n    total = 0\\n    for i in range(n):\\n        total += i\\n    return total")
def cell(line, body):
    return shell.run_cell_magic("tare", line, body)
"""


def test_functions(python):
    said = python(SHELL + """
profile = cell("", "for _ in range(7):\\n    answer = step(3)")
print([f.calls for f in profile.functions() if f.name == "step"], shell.user_ns["answer"], shell.user_ns["tare_profile"] is profile)
print("step" in profile._repr_html_())
""")
    assert said.stdout.splitlines()[-2:] == ["[7] 3 True", "True"]


def test_threads_of_the_notebook_are_left_out(python):
    said = python("""
import threading, time
stop, steps = threading.Event(), []
def kernel_io():
    while not stop.is_set():
        steps.append(len(steps))
        time.sleep(0.001)
threading.Thread(target=kernel_io, name="IOPub", daemon=True).start()
""" + SHELL + """
profile = cell("", "import threading, time\\nworker = threading.Thread(target=step, args=(3,))\\nworker.start()\\n"
               "worker.join()\\ntime.sleep(0.1)")
stop.set()
names = {f.name for f in profile.functions()}
print("step" in names, "<method 'append' of 'list' objects>" in names, [t.name for t in profile.trees()].count("IOPub"))
print("left out: threads of the notebook itself (IOPub)" in profile._repr_html_())
""")
    assert said.stdout.splitlines()[-2:] == ["True False 0", "True"]


def test_lines(python):
    said = python(SHELL + """
profile = cell("lines -f step", "step(4)")
print([line.hits for line in profile.lines()])
""")
    assert "[1, 5, 4, 1]" in said.stdout


def test_bench(python):
    said = python(SHELL + """
run = cell("bench --budget 0.2", "step(50)")
print(run.cases[0].p50_ms > 0, "<table" in run._repr_html_())
""")
    assert said.stdout.splitlines()[-1] == "True True"


def test_the_line_form(python):
    said = python(SHELL + """
profile = shell.run_line_magic("tare", "functions step(2)")
print([f.calls for f in profile.functions() if f.name == "step"])
""")
    assert said.stdout.splitlines()[-1] == "[1]"


def test_a_statement_is_taken_as_it_stands(python):
    said = python(SHELL + """
shell.run_line_magic("tare", "text = 'a   b' + str(-1)")
print(repr(shell.user_ns["text"]))
profile = shell.run_line_magic("tare", "lines -f step  step(2) -  3")
print([line.hits for line in profile.lines()])
""")
    assert said.stdout.splitlines()[-2:] == ["'a   b-1'", "[1, 3, 2, 1]"]


def test_functions_of_a_profiled_cell_keep_their_source(python):
    said = python(SHELL + """
cell("", "def made(n):\\n    return n + 1\\nmade(1)")
cell("", "made(2)")
print(cell("lines -f made", "made(3)").lines()[0].source.strip())
""")
    assert said.stdout.splitlines()[-1] == "return n + 1"


def test_a_cell_that_raises_leaves_its_profile(python):
    said = python(SHELL + """
try:
    cell("", "step(3)\\n1 / 0")
except ZeroDivisionError:
    print([f.calls for f in shell.user_ns["tare_profile"].functions() if f.name == "step"])
""")
    assert said.stdout.splitlines()[-1] == "[1]"


@pytest.mark.parametrize("line, body, word", [
    ("lines", "pass", "name the functions"),
    ("lines -f nothing", "pass", "not defined"),
    ("functions --nonsense", "pass", "not understood"),
    ("", "  ", "nothing to run"),
    ("", "1 +", "invalid syntax"),
    ("", "1 / 0", "division"),
])
def test_refused(python, line, body, word):
    said = python(SHELL + f"""
try:
    cell({line!r}, {body!r})
except BaseException as error:
    print("refused:", error)
profile = cell("", "step(1)")
print("and works again")
""")
    assert "refused:" in said.stdout and word in said.stdout
    assert "and works again" in said.stdout


def test_a_terminal_shows_the_table(python):
    said = python(SHELL + """
for line in "functions --rows 3 -s calls step(2)", "lines -f step step(2)", "bench --budget 0.1 step(2)":
    shown = shell.display_formatter.format(shell.run_line_magic("tare", line))[0]
    print("step" in shown["text/plain"] or "p50" in shown["text/plain"], "object at" in shown["text/plain"], shown["text/html"].count("pre-wrap"))
profile = shell.run_line_magic("tare", "functions --fast step(2)")
print(profile.shown)
shell.run_line_magic("tare", "-h")
""")
    assert said.stdout.count("True False 0") == 3 and "('self', 25)" in said.stdout and "%tare [what] STATEMENT" in said.stdout


def test_await_has_a_hint(python):
    said = python(SHELL + """
try:
    cell("", "import asyncio\\nawait asyncio.sleep(0)")
except SyntaxError as error:
    print(error.msg)
""")
    assert "with tare.functions() as profile" in said.stdout
