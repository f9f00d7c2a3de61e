# SPDX-License-Identifier: MIT
"""The package as pip leaves it: a wheel of this tree in a venv of its own, used from another folder; what the extension needs; its stubs."""

import ast
import os
import re
import subprocess
import sys
import zipfile

import pytest


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(root, package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q", "-w", folder, ".", cwd=root, env=env)
    return next(folder.glob("tare-*.whl"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """bin/ of a venv with nothing but the wheel."""
    venv = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    return venv / "bin"


def test_a_wheel_carries_all_of_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (r"tare/_tare\..*\.so", r"tare/_lib/libtare\.so\.0", r"tare/_bin/tare", r"tare/__init__\.py", r"tare/py\.typed",
                   r"tare/__init__\.pyi", r"tare/_tare\.pyi", r"tare/page\.html"):
        assert any(re.fullmatch(wanted, n) for n in names), (wanted, names)
    assert not any(n.startswith("tests") or n.endswith(".c") for n in names), names


def test_the_extension_needs_libc_alone(package):
    extension = next((package / "tare").glob("_tare.*.so"))
    needed = re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", extension))
    assert set(needed) <= {"libtare.so.0", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                           "ld-linux-aarch64.so.1"}, needed
    defined = [line.split()[-1] for line in run("nm", "-D", "--defined-only", extension).splitlines()]
    assert defined == ["PyInit__tare"]


def test_installed_and_used_from_elsewhere(installed, tmp_path, clean_env):
    script = tmp_path / "use.py"
    script.write_text("import tare\n"
                      "from tare import _command\n"
                      "assert 'site-packages' in tare.__file__\n"
                      "tare.start('x.tare')\n"
                      "with tare.scope('step'): pass\n"
                      "tare.stop()\n"
                      "print(_command.call('report', 'x.tare'))\n")
    assert "step" in run(installed / "python", script, cwd=tmp_path, env=clean_env)
    assert run(installed / "tare", "version", cwd=tmp_path, env=clean_env).startswith("tare ")
    assert "functions" in run(installed / "python", "-m", "tare", "--help", cwd=tmp_path, env=clean_env)


def test_a_free_threaded_interpreter_is_refused_by_name(python):
    said = python("import sys\nsys.abiflags = 't'\ntry:\n    import tare\nexcept ImportError as why:\n    print(why)\n")
    assert re.match(r"tare does not run in free-threaded CPython \(\S+python\S*\): .* Use the ordinary build of Python 3\.\d+\.$", said.stdout), said.stdout


def test_import_brings_nothing_heavy(python):
    said = python("import sys, tare\nprint([m for m in ('torch', 'numpy', 'onnxruntime', 'pandas', 'asyncio') if m in sys.modules])\n")
    assert said.stdout.strip() == "[]"


def test_every_public_name_exists_and_has_a_stub(python, root):
    said = python("import tare\nprint(*[n for n in tare.__all__ if getattr(tare, n) is not None])\n")
    stub = ast.parse((root / "python" / "tare" / "__init__.pyi").read_text())
    stubbed = {n.name for n in stub.body if hasattr(n, "name")}
    stubbed |= {t.target.id for t in stub.body if isinstance(t, ast.AnnAssign)}
    stubbed |= {a.asname or a.name for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(said.stdout.split()) <= stubbed, set(said.stdout.split()) - stubbed


def test_every_public_name_and_method_has_a_signature(python):
    """help(), editors and wrappers ask inspect.signature(); what exceptions inherit from Python itself is not ours."""
    said = python(
        "import inspect, tare\n"
        "for name in tare.__all__:\n"
        "    thing = getattr(tare, name)\n"
        "    inside = [getattr(thing, m) for m in dir(thing) if m[0] != '_'] if inspect.isclass(thing) else []\n"
        "    for one in [thing, *inside]:\n"
        "        if callable(one) and not hasattr(BaseException, getattr(one, '__name__', '')):\n"
        "            print(name, inspect.signature(one))\n"
    )
    assert "start (path, *, mode='both', disk_bytes=1073741824, memory_bytes=536870912)" in said.stdout


def words_of(root):
    """word -> module of the package, from the table of `python -m tare`."""
    table = ast.parse((root / "python" / "tare" / "__main__.py").read_text())
    found = next(n.value for n in table.body if isinstance(n, ast.Assign) and n.targets[0].id == "COMMANDS")
    return {word: row[0].partition(":")[0] for word, row in ast.literal_eval(found).items()}


def test_each_word_has_its_module_its_page_and_is_known_to_the_command(root, tare):
    index = (root / "docs" / "python" / "README.md").read_text()
    for word, module in words_of(root).items():
        assert (root / "python" / "tare" / (module + ".py")).exists(), module
        assert re.search(rf"`(python -m tare )?{word}`", index), f"docs/python/README.md does not name {word}"
        if word != "bench":  # which is a command of its own, too
            assert re.search(rf"^  {word} +\S", tare("-h").stdout, re.M), f"tare -h does not show {word}"


def options_of(python, words):
    """All options that --help lists of these words."""
    said = [python("-m", "tare", *word.split(), "--help").stdout for word in words]
    listed = [line for text in said for line in re.findall(r"^  (-.*?)(?:  |$)", text, re.M)]
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(listed))) - {"-h", "--help"}


def options_on(page):
    """Those in the first column of the page's table of options."""
    table = re.search(r"^\| option (?:of `python -m tare|\| of).*?\n\n", page.read_text() + "\n\n", re.S | re.M)
    cells = [line.split("|")[1] for line in table.group().splitlines()[2:] if line]
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(cells)))


@pytest.mark.parametrize("page, words", [
    ("functions", ["functions"]), ("lines", ["lines"]), ("model-profiler", ["profile"]),
    ("text-services", ["nli", "nli-batch", "embedding batch-sizes", "embedding memory", "embedding text-lengths"]),
])  # fmt: skip
def test_the_pages_list_every_option_and_no_other(python, root, page, words):
    assert options_on(root / "docs" / "python" / (page + ".md")) == options_of(python, words)


def test_unknown_names_and_words(python):
    assert "no attribute 'nonsense'" in python("import tare\ntare.nonsense\n", status=1).stderr
    said = python("-m", "tare", "nonsense", status=2)
    assert "nonsense" in said.stderr
