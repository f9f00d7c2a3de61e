# SPDX-License-Identifier: MIT
"""%load_ext tare: profiles of a cell or a line in IPython and Jupyter. The profile shows itself and stays in `tare_profile`."""

import argparse
import shlex

from tare._bench import bench
from tare._functions import functions
from tare._lines import lines

_USAGE = """%%tare [functions]           calls of the cell (default)
%%tare lines -f NAME ...     lines of functions, by their names in the notebook
%%tare bench                 the cell again and again until its time is known
%tare [what] STATEMENT       the same for one line"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"{message}\n{_USAGE}")


def _parser():
    parser = _Parser(prog="%%tare", add_help=False)
    parser.add_argument("-f", "--function", action="append", default=[])
    parser.add_argument("--sort", default="self")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring")
    return parser


def _functions(shell, options, code):
    profile = functions()
    with profile:
        exec(code, shell.user_ns)
    return profile


def _lines(shell, options, code):
    if not options.function:
        raise ValueError("name the functions: %%tare lines -f train_step")
    missing = [name for name in options.function if name not in shell.user_ns]
    if missing:
        raise NameError(f"{', '.join(missing)}: not defined in this notebook")
    profile = lines(*(shell.user_ns[name] for name in options.function))
    with profile:
        exec(code, shell.user_ns)
    return profile


def _bench(shell, options, code):
    return bench(lambda: exec(code, shell.user_ns), budget=options.budget, name="cell")


_WHAT = {"functions": _functions, "lines": _lines, "bench": _bench}


def _split(line, cell):
    """(what, options, source). In the line form everything after the options is the statement."""
    words = shlex.split(line) if cell is not None else line.split()
    what = words.pop(0) if words and words[0] in _WHAT else "functions"
    options, rest = _parser().parse_known_args(words)
    if cell is None:
        return what, options, " ".join(rest)
    if rest:
        raise ValueError(f"{' '.join(rest)}: not understood\n{_USAGE}")
    return what, options, cell


def magic(shell, line, cell=None):
    """Runs a cell or a statement under a profile and returns the profile, which IPython displays."""
    what, options, source = _split(line, cell)
    if not source.strip():
        raise ValueError(f"nothing to run\n{_USAGE}")
    code = compile(shell.transform_cell(source), "<cell>", "exec")
    profile = _WHAT[what](shell, options, code)
    shell.user_ns["tare_profile"] = profile
    return profile


def load_ipython_extension(ipython):
    """Called by %load_ext tare."""

    def tare(line, cell=None):
        return magic(ipython, line, cell)

    ipython.register_magic_function(tare, "line_cell", "tare")
