# SPDX-License-Identifier: MIT
"""python -m tare functions: runs a script or a module under the function profiler, as python -m cProfile does."""

import argparse
import os
import sys

from tare import _functions_table, _program
from tare._functions import functions, writer

_EXAMPLES = """examples:
  python -m tare functions script.py arg          table on standard output when the script ends
  python -m tare functions -o out.prof -m module  for pstats and snakeviz; .txt, .json (speedscope), .folded, .html likewise"""


def _sort(word):
    try:
        _functions_table.sort_key(word)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return word


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tare functions",
        description="Profiles all calls of a Python program, in all threads.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-o FILE] [-s ORDER] [--rows N] [--fast] [--exact-c] (-m MODULE | SCRIPT) ...",
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (by its ending) in place of a table")
    parser.add_argument("-s", "--sort", default="self", type=_sort, metavar="ORDER", help="self (default), total, calls, name, file, ...")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of the table (default: all)")
    parser.add_argument("--fast", action="store_true", help="Python functions only, at a fraction of the cost")
    parser.add_argument("--exact-c", action="store_true", help="count every C call, at a higher cost (3.12 and newer)")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the script and its arguments")
    return parser


def _show(profile, options):
    if not options.output:
        profile.print(options.sort, options.rows)
        return 0
    try:
        profile.save(options.output)
    except (OSError, ValueError, RuntimeError) as failed:
        print(f"tare: {failed}", file=sys.stderr)
        return 3
    print(f"tare: wrote {options.output}", file=sys.stderr)
    for why in profile.trouble:
        print(f"tare: incomplete: {why}", file=sys.stderr)
    return 0


def main(argv):
    parser = _parser()
    ours, program = _program.split(argv, ("-o", "--output", "-s", "--sort", "--rows"))
    options = parser.parse_args(ours)
    if not options.module and not program:
        parser.error("name a script, or a module with -m")
    try:
        _program.check_output(options.output, writer)
    except ValueError as wrong:
        parser.error(f"argument -o/--output: {wrong}")
    try:
        code, names = _program.load(options.module, program)
    except (OSError, ImportError, SyntaxError, ValueError) as wrong:
        print(_program.refusal(options.module or program[0], wrong), file=sys.stderr)
        return 2
    profile, process = functions(fast=options.fast, exact_c=options.exact_c), os.getpid()
    profile.title = options.module or os.path.basename(program[0])
    error = _program.run(profile, code, names)
    status = _show(profile, options) if os.getpid() == process else 0
    return _program.end(error, status)
