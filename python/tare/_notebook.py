# SPDX-License-Identifier: MIT
"""%load_ext tare: profiles of a cell or a line in IPython and Jupyter. The profile shows itself and stays in `tare_profile`."""

import argparse
import itertools
import linecache
import re
import shlex
import threading

from tare._bench import bench
from tare._functions import functions
from tare._lines import lines
from tare._program import sort_word
from tare._sample import sample

_USAGE = """%%tare [functions]           calls of the cell (default); --fast, -s ORDER, --rows N as python -m tare functions
%%tare lines -f NAME ...     lines of functions, by their names in the notebook
%%tare bench                 the cell again and again until its time is known
%%tare_sample                where the threads are while the cell runs; --hz N looks per second
%tare [what] STATEMENT       the same for one line; %tare -h shows this"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(f"{message}\n{_USAGE}")


def _parser():
    parser = _Parser(prog="%%tare", add_help=False)
    parser.add_argument("-f", "--function", action="append", default=[])
    parser.add_argument("-s", "--sort", default="self", type=sort_word)
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--hz", type=float, default=200)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring")
    return parser


def _functions(shell, options):
    profile = functions(fast=options.fast)
    profile.shown = (options.sort, options.rows)
    return profile


def _sample(shell, options):
    return sample(options.hz)


def _lines(shell, options):
    if not options.function:
        raise ValueError("name the functions: %%tare lines -f train_step")
    missing = [name for name in options.function if name not in shell.user_ns]
    if missing:
        raise NameError(f"{', '.join(missing)}: not defined in this notebook")
    return lines(*(shell.user_ns[name] for name in options.function))


_kernel: set[int] = set()  # threads that were there when the extension was loaded, but for the one that runs cells


def _profiled(make):
    """The profile stays in the notebook, also if the cell raises."""

    def run(shell, options, code):
        names = shell.user_ns  # a property of the shell: read outside the profile, which it is no part of
        profile = names["tare_profile"] = make(shell, options)
        try:
            with profile:
                exec(code, names)
        finally:
            if isinstance(profile, functions):
                profile.leave_out(_kernel - {threading.get_ident()})
        return profile

    return run


def _bench(shell, options, code):
    run = shell.user_ns["tare_profile"] = bench(lambda: exec(code, shell.user_ns), budget=options.budget, name="cell")
    return run


_WHAT = {"functions": _profiled(_functions), "lines": _profiled(_lines), "sample": _profiled(_sample), "bench": _bench}
_AHEAD = re.compile(r"\s*(?:(?:--?(?:f|function|s|sort|rows|budget|hz)[ =]\s*\S+|--fast|-h|--help)(?:\s+|$))*")


def _split(line, cell):
    """(what, options, source). In the line form everything after the options is the statement, as it stands."""
    first, _, after = line.strip().partition(" ")
    what, line = (first, after) if first in _WHAT else ("functions", line)
    ahead = _AHEAD.match(line).end() if cell is None else len(line)
    options, rest = _parser().parse_known_args(shlex.split(line[:ahead]))
    if rest:
        raise ValueError(f"{' '.join(rest)}: not understood\n{_USAGE}")
    return what, options, line[ahead:] if cell is None else cell


_numbers = itertools.count(1)


def _compile(source):
    """Under a name of its own, by which tracebacks and profiles of lines find the source."""
    name = f"<tare cell {next(_numbers)}>"
    try:
        code = compile(source, name, "exec")
    except SyntaxError as wrong:
        if "await" in wrong.msg or "async" in wrong.msg:
            wrong.msg += " (%%tare cannot await: in a plain cell, write `with tare.functions() as profile: await ...`)"
        raise
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return code


def magic(shell, line, cell=None):
    """Runs a cell or a statement under a profile and returns the profile, which IPython displays."""
    what, options, source = _split(line, cell)
    if options.help:
        print(_USAGE)
        return None
    if not source.strip():
        raise ValueError(f"nothing to run\n{_USAGE}")
    return _WHAT[what](shell, options, _compile(shell.transform_cell(source)))


def load_ipython_extension(ipython) -> None:
    """Called by %load_ext tare."""
    if not _kernel:
        _kernel.update(t.ident for t in threading.enumerate() if t.ident)

    def tare(line, cell=None):
        return magic(ipython, line, cell)

    def tare_sample(line, cell=None):
        return magic(ipython, "sample " + line, cell)

    ipython.register_magic_function(tare, "line_cell", "tare")
    ipython.register_magic_function(tare_sample, "line_cell", "tare_sample")
