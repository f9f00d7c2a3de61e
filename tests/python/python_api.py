# SPDX-License-Identifier: MIT
"""What `import tare` promises, one name a line with its parameters and their defaults, and what breaks such a promise.

    PYTHONPATH=build/python/TAG python3 tests/python/python_api.py            what the package has
    PYTHONPATH=build/python/TAG python3 tests/python/python_api.py --bless    keep that in tests/golden/python-api.txt"""

import ast
import inspect
import pathlib
import sys

PROMISED = pathlib.Path(__file__).resolve().parents[1] / "golden" / "python-api.txt"
SPOKEN = ("__call__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__")
LITERALS = (bool, int, float, str, bytes, type(None), tuple)


def shown(value):
    """(parameters) without types: those may get wider. A default that is no literal is `...`."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(?)"
    parameters = []
    for p in signature.parameters.values():
        default = p.default
        if default is not p.empty and not isinstance(default, LITERALS):
            default = ...
        if default is not p.empty and isinstance(default, float) and type(default) is not float:
            default = ...  # an Unknown
        parameters.append(p.replace(annotation=p.empty, default=default))
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty)).replace("Ellipsis", "...")


def members(cls):
    """[(name, what it is)] of what tare's own classes define."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "tare":
            found.update({n: v for n, v in vars(base).items() if not n.startswith("_") or n in SPOKEN})
    out = []
    for name, value in sorted(found.items()):
        value = getattr(value, "__func__", value)  # of a class or static method
        out.append((name, shown(value) if callable(value) else ": attribute"))
    return out


def api(package):
    lines = []
    for name in sorted(package.__all__):
        value = getattr(package, name)
        if not callable(value):
            lines.append(name + ": attribute")
            continue
        lines.append(name + shown(value))
        if inspect.isclass(value):
            lines += ["%s.%s%s" % (name, member, what) for member, what in members(value)]
    return lines


# ---- comparing -----------------------------------------------------------------------------------------

def parsed(text):
    """{name: (place or None, kind, default or None)} of "(a, *, b=1)"."""
    arguments = ast.parse("def f%s: pass" % text).body[0].args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    out = {}
    for place, (p, default) in enumerate(zip(plain, defaults)):
        only = place < len(arguments.posonlyargs)
        out[p.arg] = (place, "place" if only else "either", default and ast.unparse(default))
    for p, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        out[p.arg] = (None, "name", default and ast.unparse(default))
    for sign, p in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if p:
            out[sign] = (None, sign, None)
    return out


def broken_call(old, new):
    """Why a call that the old parameters allowed may mean something else with the new ones; None: it does not."""
    if "?" in old + new or old.startswith(":") or new.startswith(":"):
        return None if old == new or "?" in old else "is %s now" % new
    old, new = parsed(old), parsed(new)
    for name, (place, kind, default) in old.items():
        if name not in new:
            if kind == "place" and any(p[0] == place for p in new.values()):
                continue
            return "%s is gone" % name
        now_place, now_kind, now_default = new[name]
        if place is not None and now_place != place:
            return "%s is in another place" % name
        if kind in ("either", "name") and now_kind == "place":
            return "%s cannot be given by name any more" % name
        if default is not None and now_default != default:
            return "%s is %s if it is not given, it was %s" % (name, now_default or "wanted", default)
    for name, (_, kind, default) in new.items():
        if name not in old and default is None and kind not in ("*", "**"):
            return "%s is new and must be given" % name
    return None


def split(line):
    """("Run.best", "(self)")"""
    at = min(i for i in (line.find("("), line.find(":")) if i >= 0)
    return line[:at], line[at:]


def compare(promised, now):
    """(what is broken, what is new), as lines."""
    today = dict(map(split, now))
    broken = []
    for line in promised:
        name, what = split(line)
        why = broken_call(what, today[name]) if name in today else "is gone"
        if why:
            broken.append("tare.%s%s: %s" % (name, what, why))
    known = {split(line)[0] for line in promised}
    return broken, [line for line in now if split(line)[0] not in known]


if __name__ == "__main__":
    import tare

    text = "\n".join(api(tare)) + "\n"
    if "--bless" in sys.argv:
        PROMISED.write_text(text)
    else:
        sys.stdout.write(text)
