# SPDX-License-Identifier: MIT
"""python -m tare functions: runs a script or a module under the function profiler, as python -m cProfile does."""

import argparse

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
    parser = _program.parser(
        "functions",
        "Profiles all calls of a Python program, in all threads.",
        "[-s ORDER] [--rows N] [--fast] [--exact-c]",
        _EXAMPLES,
    )
    parser.add_argument("-s", "--sort", default="self", type=_sort, metavar="ORDER", help="self (default), total, calls, name, file, ...")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of the table (default: all)")
    parser.add_argument("--fast", action="store_true", help="Python functions only, at a fraction of the cost")
    parser.add_argument("--exact-c", action="store_true", help="count every C call, at a higher cost (3.12 and newer)")
    return parser


def main(argv):
    command = _program.Command(
        parser=_parser(),
        takes_value=("-o", "--output", "-s", "--sort", "--rows"),
        writer=writer,
        profile=lambda options, _: functions(fast=options.fast, exact_c=options.exact_c),
        show=lambda profile, options: profile.print(options.sort, options.rows),
    )
    return _program.main(command, argv)
