# SPDX-License-Identifier: MIT
"""python -m tare lines: runs a script or a module under the line profiler."""

from tare import _program
from tare._lines import inner_codes, lines, writer

_EXAMPLES = """examples:
  python -m tare lines script.py arg                       all functions written in script.py
  python -m tare lines -f train_step -f Model.forward script.py
  python -m tare lines -o lines.txt -m package.module      or .json"""


def _parser():
    parser = _program.parser(
        "lines", "Profiles the lines of a Python program's functions, in all threads.", "[-f NAME]...", _EXAMPLES
    )
    parser.add_argument("-f", "--function", action="append", default=[], metavar="NAME",
                        help="only functions of this name, qualified or not (repeatable; default: all of the script)")
    return parser


def _names(code):
    return code.co_name, getattr(code, "co_qualname", code.co_name)


def _wanted(code, names):
    """The code objects written in the program that the names choose."""
    inside = list(inner_codes(code))
    missing = [name for name in names if not any(name in _names(c) for c in inside)]
    if missing:
        raise ValueError(f"no function named {', '.join(missing)} in it")
    return [c for c in inside if not names or set(names) & set(_names(c))]


def main(argv):
    command = _program.Command(
        parser=_parser(),
        takes_value=("-o", "--output", "-f", "--function"),
        writer=writer,
        profile=lambda options, code: lines(*_wanted(code, options.function)),
        show=lambda profile, _: profile.print(),
    )
    return _program.main(command, argv)
