# SPDX-License-Identifier: MIT
"""Programs without a stall: the answer is that there is nothing to gain, with its reason. bench/py_nothing asks them again and again."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no torch (make deps)", allow_module_level=True)
path = pathlib.Path(__file__).resolve().parents[2] / "bench" / "py_nothing"
loader = importlib.machinery.SourceFileLoader("py_nothing", str(path))
programs = importlib.util.module_from_spec(importlib.util.spec_from_loader("py_nothing", loader))
loader.exec_module(programs)


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.__name__)
def test_nothing_to_gain(program, monkeypatch):
    monkeypatch.setattr(programs, "BUDGET_S", 5.0)
    tuned = program()
    assert not programs.false_gain(tuned) and tuned.reasons, str(tuned)
    assert tuned.verdict in ("no_gain", "over_budget"), str(tuned)  # over: on a busy machine it may stay open
