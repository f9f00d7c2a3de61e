# SPDX-License-Identifier: MIT
"""Results, histories and traces are for their owner alone; what its user named to give it to others is as any new file."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder):
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".gitignore"}  # which says nothing


def kinds(found):
    """{ending: modes}"""
    by_ending = {}
    for name, mode in found.items():
        by_ending.setdefault(name[name.rindex("."):], set()).add(mode)
    return by_ending


def test_run_keeps_its_document_trace_and_history_private(tare, tmp_path):
    look = "ls -l tare-results >&2; sleep 0.1"
    tare("run", "-q", "--probe", "process", "--", "sh", "-c", look)
    assert kinds(modes(tmp_path)) == {".json": {"0o600"}, ".tare": {"0o600"}, ".db": {"0o600"}}
    tare("run", "-q", "--probe", "process", "--", "sh", "-c", look)  # into a history that is there
    assert set(modes(tmp_path).values()) == {"0o600"}


def test_bench_keeps_its_document_and_history_private(tare, tmp_path):
    tare("bench", "--budget", "100ms", "--repeat", 2, "--", "true")
    assert kinds(modes(tmp_path)) == {".json": {"0o600"}, ".db": {"0o600"}}


def test_the_log_beside_the_history_is_private(tare, tmp_path):
    """-wal and -shm, which another process sees while the history is open."""
    import sqlite3  # pylint: disable=import-outside-toplevel

    tare("run", "-q", "--probe", "process", "--", "true")
    db = sqlite3.connect(tmp_path / "tare-results" / "history.db")
    db.execute("CREATE TEMP TABLE t(x)")
    db.execute("SELECT count(*) FROM run").fetchone()
    found = modes(tmp_path / "tare-results")
    db.close()
    assert {"history.db-wal", "history.db-shm"} <= set(found) and set(found.values()) == {"0o600"}


def test_what_the_user_names_is_as_any_new_file(tare, tmp_path):
    tare("run", "-q", "--probe", "process", "--no-history", "-o", "run.json", "--html", "run.html", "--", "true")
    tare("bench", "--budget", "100ms", "--no-save", "--junit", "bench.xml", "--html", "bench.html", "--", "true")
    tare("report", "run.json", "-o", "report.txt")
    found = modes(tmp_path)
    assert found.pop("run.tare") == "0o600"
    assert found == {name: "0o644" for name in ("run.json", "run.html", "bench.xml", "bench.html", "report.txt")}
    os.umask(0o077)
    tare("report", "run.json", "-o", "own.txt")
    assert modes(tmp_path)["own.txt"] == "0o600"


def test_python_keeps_results_private_and_named_files_as_new_ones(python, tmp_path):
    python("""
        import os, tare
        from tare import _answers
        run = tare.bench(lambda: None, budget=0.05)
        run.save()
        os.makedirs("tare-results", exist_ok=True)
        _answers.write_dated("tare-results", "embedding_2026-01-01", "{}")
        _answers.write_text("named.txt", "x")
        os.umask(0o077)
        _answers.write_text("own.txt", "x")
    """)
    found = modes(tmp_path)
    del found["script.py"]
    assert found.pop("named.txt") == "0o644" and found.pop("own.txt") == "0o600"
    assert len(found) == 3 and set(found.values()) == {"0o600"}


# ---- what others put in the way, where everybody may write ----

NOBODY = 65534


@pytest.fixture(name="open_folder")
def folder_for_everybody(tmp_path):
    if os.getuid() != 0:
        pytest.skip("not root: nothing can be given to another user")
    tmp_path.chmod(0o1777)
    return tmp_path


def test_settings_of_another_user_are_not_read(tare, open_folder):
    """They name commands that are run. Those of the folder's owner count, as those of root and one's own."""
    settings, obeyed = open_folder / "tare.yaml", open_folder / "obeyed"
    settings.write_text("run:\n  alert: memory>0%%\n  on-alert: touch %s\n" % obeyed)
    for owner, folder, is_read in ((NOBODY, 0, False), (0, 0, True), (NOBODY, NOBODY, True), (NOBODY, 1, False)):
        os.chown(settings, owner, owner)
        os.chown(open_folder, folder, folder)
        obeyed.unlink(missing_ok=True)
        done = tare("run", "--no-save", "-q", "-i", "10ms", "--", "sleep", "0.3")
        assert obeyed.exists() == is_read
        assert (done.stderr == "tare run: warning: %s belongs to another user: not read\n" % settings) == (not is_read)


def test_links_of_another_user_are_not_followed(tare, root, open_folder):
    run, target, link = root / "tests/cli/report/sweep.run.json", open_folder / "mine", open_folder / "out.txt"
    target.write_text("mine\n")
    link.symlink_to(target)
    os.lchown(link, NOBODY, NOBODY)
    done = tare("report", run, "-o", link, status=3)
    assert done.stderr == "tare report: %s: a link that another user made is not followed\n" % link
    assert target.read_text() == "mine\n"
    os.lchown(link, 0, 0)
    tare("report", run, "-o", link)
    assert link.is_symlink() and target.read_text() != "mine\n"


def test_a_python_with_raised_privileges_ignores_our_variables(package, clean_env):
    """As libtare does: a token, an authority or a file to load is not taken from who may not have what the program has."""
    if os.getuid() != 0 or not shutil.which("setcap") or not shutil.which("setpriv"):
        pytest.skip("needs root, setcap and setpriv")
    look = ("import ctypes, os; from tare import _tare, _text_command\n"
            "print(ctypes.CDLL(None).getauxval(23), _tare.recording(), _tare.environment('TARE_TOKEN'), _text_command._setting('nli', 'model'))")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(package, folder + "/package")
        python = shutil.copy(os.path.realpath(sys.executable), folder + "/python")
        said = []
        for capability in ("", "cap_net_raw+ep"):
            if capability and subprocess.run(["setcap", capability, python], check=False).returncode:
                pytest.skip("no file capabilities here")
            env = {**clean_env, "PYTHONPATH": folder + "/package", "TARE_TRACE": "/nowhere/t", "TARE_TOKEN": "word", "TARE_MODEL": "evil.py:f"}
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", look], env=env, cwd=folder,
                                  capture_output=True, text=True, check=False)
            if done.returncode and not capability:
                pytest.skip("this interpreter does not run for another user: " + done.stderr[-200:])
            said.append(done.stdout)
    assert said == ["0 False word evil.py:f\n", "1 False  None\n"], done.stderr
