# SPDX-License-Identifier: MIT
"""python -m tare lines: runs a script or a module under the line profiler."""

import argparse
import os
import sys

from tare import _program
from tare._lines import lines, writer

_EXAMPLES = """examples:
  python -m tare lines script.py arg                       all functions written in script.py
  python -m tare lines -f train_step -f Model.forward script.py
  python -m tare lines -o lines.txt -m package.module"""


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tare lines",
        description="Profiles the lines of a Python program's functions, in all threads.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-o FILE] [-f NAME]... (-m MODULE | SCRIPT) ...",
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (.txt or .json) in place of standard output")
    parser.add_argument("-f", "--function", action="append", default=[], metavar="NAME",
                        help="only functions of this name, qualified or not (repeatable; default: all of the script)")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    return parser


def _wanted(code, names):
    """The code objects inside `code` (itself included) that the names choose."""
    inside = [code]
    for const in code.co_consts:
        if isinstance(const, type(code)) and not const.co_name.startswith("<"):
            inside += _wanted(const, [])
    chosen = [c for c in inside if not names or c.co_name in names or getattr(c, "co_qualname", c.co_name) in names]
    missing = [n for n in names if not any(n in (c.co_name, getattr(c, "co_qualname", c.co_name)) for c in inside)]
    if missing:
        raise ValueError(f"no function named {', '.join(missing)} in it")
    return chosen


def _show(profile, output):
    if not output:
        profile.print()
        return 0
    try:
        profile.save(output)
    except (OSError, ValueError) as failed:
        print(f"tare: {failed}", file=sys.stderr)
        return 3
    print(f"tare: wrote {output}", file=sys.stderr)
    return 0


def main(argv):
    parser = _parser()
    ours, program = _program.split(argv, ("-o", "--output", "-f", "--function"))
    options = parser.parse_args(ours)
    if not options.module and not program:
        parser.error("name a script, or a module with -m")
    try:
        _program.check_output(options.output, writer)
    except ValueError as wrong:
        parser.error(f"argument -o/--output: {wrong}")
    try:
        code, names = _program.load(options.module, program)
        profile = lines(*_wanted(code, options.function))
    except (OSError, ImportError, SyntaxError, ValueError) as wrong:
        print(_program.refusal(options.module or program[0], wrong), file=sys.stderr)
        return 2
    process = os.getpid()
    error = _program.run(profile, code, names)
    status = _show(profile, options.output) if os.getpid() == process else 0
    return _program.end(error, status)
