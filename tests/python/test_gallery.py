# SPDX-License-Identifier: MIT
"""docs/gallery.md: each command is run as it stands, in a folder with the files that the page names, and says what the page shows: line by
line the first word, in the page's order; numbers are the machine's."""

import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "gallery.md")


def questions():
    with open(PAGE, encoding="utf-8") as f:
        return re.split(r"^## ", f.read(), flags=re.M)[1:]


QUESTIONS = questions()


def steps(section):
    """[(command, [lines that it shows])]"""
    out = []
    for text in re.findall(r"^```\n(.*?)^```$", section, re.S | re.M):
        for line in text.splitlines():
            if line.startswith("$ "):
                out.append((line[2:], []))
            else:
                out[-1][1].append(line)
    return out


def first_word(line):
    """What a line is about: its first word that is no number and no unit."""
    text = re.sub(r"(?<!\S)[-+<~]*\d[\d.,]*(e[+-]?\d+)?( ([num]?s|[KMG]?i?B|%))?(?!\S)", " ", line)
    words = re.findall(r"[A-Za-z_/.'\[(][\w/.'\[(]*(?:=\d+)?", text)
    return words[0] if words else ""


def check(shown, told):
    """Each shown line has its like in what was told, in this order."""
    at = 0
    for line in shown:
        if line.strip() in ("...", ""):
            continue
        found = next((i for i in range(at, len(told)) if first_word(told[i]) == first_word(line)), None)
        assert found is not None, "nothing like %r in:\n%s" % (line, "\n".join(told[at:]))
        at = found + 1


@pytest.fixture
def folder(tmp_path, build, root, clean_env):
    """The files that the page names, and tare in the PATH as after `make demo` and `pip install .`."""
    shutil.copy(root / "examples" / "words.py", tmp_path)
    done = subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-I%s" % (root / "include"), str(root / "examples" / "hello.c"), str(build / "libtare.a"),
                           "-pthread", "-o", str(tmp_path / "hello")], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    env = {**clean_env, "PATH": os.pathsep.join([str(build), os.path.dirname(sys.executable), clean_env["PATH"]]), "TARE_PAGER": "cat",
           "VIRTUAL_ENV": str(root / ".venv"), "TARE_PYTHON": sys.executable}
    return tmp_path, env


@pytest.mark.parametrize("section", QUESTIONS, ids=[q.splitlines()[0] for q in QUESTIONS])
def test_question(section, folder, package):
    where, env = folder
    env["PYTHONPATH"] = str(package)
    if "mlp.onnx" in section:
        subprocess.run(["tare", "synth", "mlp", "-o", "mlp.onnx"], cwd=where, env=env, check=True, capture_output=True, timeout=60)
    assert steps(section)
    for command, shown in steps(section):
        done = subprocess.run(["bash", "-c", command], cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=120)  # fmt: skip
        told = done.stdout.splitlines()
        assert done.returncode == 0, command + "\n" + done.stdout
        check(shown, told)


def test_page_has_ten_questions_and_lists_them():
    assert len(QUESTIONS) == 10
    with open(PAGE, encoding="utf-8") as f:
        listed = re.findall(r"^\d+\. \[(.*?)\]", f.read(), re.M)
    assert ["%d. %s" % (n + 1, text) for n, text in enumerate(listed)] == [q.splitlines()[0] for q in QUESTIONS]
    assert all(re.search(r"\]\((cli/|python/|\w+)", q) for q in QUESTIONS)


@pytest.mark.parametrize("shown, told, good", [
    (["time 3 ms, x"], ["subject a", "time 5.1 s, y"], True),
    (["time 3 ms", "...", "cpu 1 %"], ["cpu 1 %", "time 3 ms"], False),
    (["200,000  22.9 ms  22.9 ms  62 %  collatz"], ["1 409 ms search", "9 1.2 us 3 s 5 %  └─ collatz"], True),
    (["verdict: x"], ["something else"], False),
    (["14  20.1 ms  45.4  {method"], ["14  66.2 ms  56.7  {method"], True),
    (["3  9 s  45.4  other"], ["14  66.2 ms  45.4  {method"], False),
])  # fmt: skip
def test_check_can_fail(shown, told, good):
    if good:
        check(shown, told)
    else:
        with pytest.raises(AssertionError, match="nothing like"):
            check(shown, told)
