# SPDX-License-Identifier: MIT
"""What a program may call of `import tare` stays (docs/compatibility.md): the list is tests/golden/python-api.txt."""

import ast
import inspect

import pytest
from python_api import PROMISED, api, broken_call, compare

HOW = "Keep the old name or parameter beside the new one, or, if the break is wanted: tell it in CHANGELOG.md and bless the list, " \
      "as the head of tests/python/python_api.py says."


def test_promises_hold(tare_package):
    broken, new = compare(PROMISED.read_text().splitlines(), api(tare_package))
    assert not broken, "\n".join([*broken, HOW])
    for line in new:
        print("new, not promised until it is blessed:", line)


@pytest.mark.parametrize("old, new, why", [
    ("(a, b=1)", "(a, b=1, c=2)", None),
    ("(a, b=1)", "(a, b=1, *, c=None)", None),
    ("(a, *, b=1)", "(a, b=1)", None),
    ("(a)", "(a, **more)", None),
    ("(a=...)", "(a=...)", None),
    ("(a, b=1)", "(a)", "b is gone"),
    ("(a, b)", "(b, a)", "another place"),
    ("(a, b=1)", "(a, *, b=1)", "another place"),
    ("(a)", "(a, b)", "must be given"),
    ("(a, b=1)", "(a, b=2)", "b is 2"),
    ("(a, b=1)", "(a, b)", "wanted"),
    ("(a)", "(a, /)", "by name"),
    ("(**more)", "()", "gone"),
    (": attribute", "(self)", "now"),
])  # fmt: skip
def test_breaks_are_found(old, new, why):
    said = broken_call(old, new)
    assert said is None if why is None else why in said


def test_names_that_go_are_found():
    promised = ["Run(text)", "Run.best(self)", "count(name, n=1)"]
    broken, new = compare(promised, ["Run(text)", "count(name, n=1)", "more()"])
    assert broken == ["tare.Run.best(self): is gone"] and new == ["more()"]


def stub_signatures(path):
    """{name: [parameter names]} of the functions at the top of a stub; of overloads the last."""
    return {node.name: node.args for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_stubs_agree(tare_package, root):
    """The stub of the package names what the package has, and the stub of the extension its parameters."""
    stub = ast.parse((root / "python" / "tare" / "__init__.pyi").read_text())
    named = {a.asname for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    named |= {n.name for n in stub.body if isinstance(n, ast.FunctionDef)}
    named |= {n.target.id for n in stub.body if isinstance(n, ast.AnnAssign)}
    assert named - {"_F"} == set(tare_package.__all__)
    for name, arguments in stub_signatures(root / "python" / "tare" / "_tare.pyi").items():
        if name not in tare_package.__all__ or name == "scope":  # of two shapes
            continue
        real = inspect.signature(getattr(tare_package, name)).parameters
        assert [p.arg for p in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]] == list(real), name
        assert {p.arg for p in arguments.kwonlyargs} == {n for n, p in real.items() if p.kind is p.KEYWORD_ONLY}, name
