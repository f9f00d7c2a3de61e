# SPDX-License-Identifier: MIT
"""The action, the workflow to copy and those on docs/ci.md: read as a CI service reads them, and the action's own comparison run."""

import json
import os
import re
import subprocess

import pytest

yaml = pytest.importorskip("yaml")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def workflows():
    found = {"examples/ci/speed.yml": text_of("examples", "ci", "speed.yml")}
    for n, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", text_of("docs", "ci.md"), re.S | re.M)):
        if re.search(r"^jobs:", block, re.M):
            found["docs/ci.md #%d" % (n + 1)] = block
    return found


def check_step(step, composite=False):
    """A step is a program of a shell or an action at a version, never both."""
    assert ("run" in step) != ("uses" in step), step
    assert set(step) <= {"name", "id", "if", "run", "uses", "with", "env", "shell", "continue-on-error", "timeout-minutes", "working-directory"}, step
    if "uses" in step:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[\w.-]+|\./.*", step["uses"]), step
        return
    assert not composite or step.get("shell"), "a composite action names the shell of each step: %s" % step
    done = subprocess.run(["bash", "-n", "-c", EXPRESSION.sub("x", step["run"])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", workflows())
def test_workflow(name):
    document = yaml.safe_load(workflows()[name])
    assert {"name", "jobs"} <= set(document) and True in document  # YAML 1.1 reads `on` as true, and so do CI services
    for job in document["jobs"].values():
        assert job["runs-on"] and job["steps"]
        for step in job["steps"]:
            check_step(step)


def test_workflow_gives_the_action_what_it_takes():
    action = yaml.safe_load(text_of("action.yml"))
    (step,) = [s for s in yaml.safe_load(text_of("examples", "ci", "speed.yml"))["jobs"]["compare"]["steps"] if "/tare@" in s.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    assert {n for n, i in action["inputs"].items() if i.get("required")} <= set(step["with"])


def test_action():
    action = yaml.safe_load(text_of("action.yml"))
    assert {"name", "description", "inputs", "runs"} <= set(action) <= {"name", "description", "inputs", "outputs", "runs", "branding", "author"}
    assert action["runs"]["using"] == "composite"
    ids = {s.get("id") for s in action["runs"]["steps"]}
    for step in action["runs"]["steps"]:
        check_step(step, composite=True)
        assert not EXPRESSION.search(step["run"]), "inputs reach the shell through the environment only: a branch's name may hold a quote"
    for said in EXPRESSION.findall(text_of("action.yml")):
        kind, name = said.split(".")[:2]
        assert (kind == "inputs" and name in action["inputs"]) or (kind == "steps" and name in ids), said
    for item in [*action["inputs"].values(), *action["outputs"].values()]:
        assert item["description"]


@pytest.fixture
def act(tmp_path, build, clean_env):
    """act(base=.., new=..): the comparing step as the service would run it; (exit status, outputs, summary)."""
    (step,) = [s for s in yaml.safe_load(text_of("action.yml"))["runs"]["steps"] if s.get("id") == "compare"]

    def call(**inputs):
        env = {**clean_env, "PATH": "%s:%s" % (build, clean_env["PATH"]), "GITHUB_OUTPUT": str(tmp_path / "outputs"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
        for name, value in step["env"].items():
            env[name] = inputs[EXPRESSION.fullmatch(value).group(1).split(".")[1]]
        (tmp_path / "summary").write_text("")
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=120)  # fmt: skip
        return done.returncode, (tmp_path / "outputs").read_text(), (tmp_path / "summary").read_text()

    return call


def test_action_compares(act, tmp_path):
    """Eight times the time is a regression on any machine; the other way round there is none."""
    options = "--max-pairs 14 --budget 60s --seed 1"
    rc, outputs, summary = act(base="sleep 0.1", new="sleep 0.8", options=options, folder="out")
    assert (rc, outputs) == (1, "status=1\n")
    assert "regress" in summary and json.loads((tmp_path / "out" / "comparison.json").read_text())["schema"].startswith("tare.comparison/1")
    assert (tmp_path / "out" / "junit.xml").read_text().startswith("<?xml") and "<!-- tare compare -->" in (tmp_path / "out" / "comment.md").read_text()
    rc, outputs, _ = act(base="sleep 0.8", new="sleep 0.1", options=options, folder="two words")
    assert rc == 0 and outputs.endswith("status=0\n")


def test_action_says_bad_input(act):
    rc, outputs, summary = act(base="sleep 0", new="./none", options="--no-such 'x y'", folder="out")
    assert (rc, outputs, summary) == (2, "status=2\n", "")
