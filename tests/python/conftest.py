# SPDX-License-Identifier: MIT
"""What the Python tests share: where the tree and the build are, how to run tare, how to build a traced program."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import made
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "build" / "python" / sys.implementation.cache_tag))  # for files that import tare themselves

# Whoever started the tests in the background made them ignore these; what the tests start would inherit it.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


@pytest.fixture(scope="session")
def root():
    """The root of the source tree."""
    return pathlib.Path(os.environ.get("TARE_SRC", ROOT))


@pytest.fixture(scope="session")
def build(root):
    """The folder with the built command and libraries."""
    folder = pathlib.Path(os.environ.get("BUILT", root / "build"))
    assert (folder / "tare").exists(), "%s/tare is not built: make" % folder
    return folder


@pytest.fixture(scope="session")
def infer_dump():
    """The driver of shape inference (infer_dump.c), built from the tree's own sources, or TARE_INFER_DUMP."""
    given = os.environ.get("TARE_INFER_DUMP")
    if given:
        return pathlib.Path(given)
    return made.make("build/helpers/infer_dump")[0]


def built_package():
    made.make("python", "PYTHON=" + sys.executable)
    return made.ROOT / "build" / "python" / sys.implementation.cache_tag


@pytest.fixture(scope="session")
def package():
    """The folder to put on PYTHONPATH for `import tare` with this interpreter, built now if it is not."""
    return built_package()


def pytest_pycollect_makemodule(module_path):
    """A file of tests that imports tare itself finds it built."""
    if re.search(r"^(import|from) tare\b", module_path.read_text(), re.M):
        sys.path.insert(0, str(built_package()))


@pytest.fixture(scope="session")
def tare_package(package):
    """The package in this process, as the tests of functions need it."""
    sys.path.insert(0, str(package))
    import tare

    return tare


@pytest.fixture(autouse=True, scope="module")
def nothing_remembered(request, tmp_path_factory):
    """Tests of the package remember for themselves what optimizers decided, not for the user or each other."""
    if not request.module.__name__.startswith("test_py_"):
        yield
        return
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture
def python(package, clean_env, tmp_path):
    """python("script text", *args, status=0) or python("-m", "tare", ..., status=0): this interpreter with the package, in an empty
    folder."""

    def call(*args, status=0, env=None, **more):
        if args and ("\n" in args[0] or " " in args[0]):
            script = tmp_path / "script.py"
            script.write_text(textwrap.dedent(args[0]))
            args = (script, *args[1:])
        done = subprocess.run([sys.executable, *map(str, args)], cwd=tmp_path, timeout=120, stdin=subprocess.DEVNULL,
                              env={**clean_env, "PYTHONPATH": str(package), **(env or {})}, capture_output=True, text=True,
                              check=False, **more)
        assert done.returncode == status, "python %s: exit %d\n%s%s" % (args[:1], done.returncode, done.stdout, done.stderr)
        return done

    return call


@pytest.fixture
def clean_env():
    """The environment without settings of the person who runs the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith("TARE_")}


@pytest.fixture
def tare(build, clean_env, tmp_path):
    """tare("report", path, status=0, env={}): run the command in an empty folder, check its exit status (several: one of them)."""
    command = os.environ.get("TARE", str(build / "tare"))

    def call(*args, status=0, env=None, **more):
        done = subprocess.run([command, *map(str, args)], cwd=tmp_path, env={**clean_env, **(env or {})}, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)
        good = status if isinstance(status, tuple) else (status,)
        assert done.returncode in good, "tare %s: exit %d\n%s%s" % (args, done.returncode, done.stdout, done.stderr)
        return done

    return call


@pytest.fixture
def compile_c(root, build, tmp_path):
    """compile_c(text): a C program linked with libtare.a; returns its path."""

    def call(text, name="program", *flags):
        source = tmp_path / (name + ".c")
        source.write_text(text)
        out = tmp_path / name
        cmd = [os.environ.get("CC", "gcc"), "-O1", "-g", "-D_GNU_SOURCE", "-I%s" % (root / "include"), str(source),
               str(build / "libtare.a"), "-pthread", "-lm", *flags, "-o", str(out)]
        done = subprocess.run(cmd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return out

    return call


@pytest.fixture
def started(tmp_path):
    """Starts a program that says "ready", and ends it afterwards."""
    running = []

    def start(text, *args, python=sys.executable):
        script = tmp_path / ("victim%d.py" % len(running))
        script.write_text(textwrap.dedent(text))
        p = subprocess.Popen([os.path.realpath(python), "-S", str(script), *args], stdout=subprocess.PIPE, text=True)
        running.append(p)
        assert p.stdout.readline() == "ready\n"
        return p

    yield start
    for p in running:
        p.kill()
        p.wait()
        p.stdout.close()
