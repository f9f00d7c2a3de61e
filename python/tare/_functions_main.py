# SPDX-License-Identifier: MIT
"""python -m tare functions: runs a script or a module under the function profiler, as python -m cProfile does."""

import argparse
import importlib.util
import io
import os
import sys
import types

from tare import _functions_table
from tare._functions import functions

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


def _split(argv):
    """What follows -m MODULE or the script is the program's, whatever it looks like."""
    takes_value = ("-o", "--output", "-s", "--sort", "--rows")
    i = 0
    while i < len(argv) and argv[i].startswith("-") and argv[i] != "-":
        if argv[i] == "-m":
            return argv[: i + 2], argv[i + 2 :]
        i += 2 if argv[i] in takes_value else 1
    return argv[:i], argv[i:]


def _main_module(file, spec=None):
    """A `__main__` of the program's own, so that pickling and multiprocessing find its names."""
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__spec__ = spec
    module.__builtins__ = __builtins__
    if spec:
        module.__package__ = spec.parent
        module.__loader__ = spec.loader
    sys.modules["__main__"] = module
    return vars(module)


def _find_module(name):
    """The code to run for `-m name`, and its spec. ImportError in the words of python -m."""
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations is not None:
        name += ".__main__"
        spec = importlib.util.find_spec(name)
    if not spec or not hasattr(spec.loader, "get_code"):
        raise ImportError(f"No module named {name}")
    code = spec.loader.get_code(name)
    if code is None:
        raise ImportError(f"No code object available for {name}")
    return code, spec


def _prepare_module(name):
    sys.path.insert(0, os.getcwd())
    code, spec = _find_module(name)
    sys.argv[0] = spec.origin
    return code, _main_module(spec.origin, spec)


def _prepare_script(path):
    with io.open_code(os.path.abspath(path)) as script:
        code = compile(script.read(), path, "exec", dont_inherit=True)
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    return code, _main_module(path)


def _run(profile, code, names):
    """The program's exception, traceback without our frames, or None. Only the process that began it has results to show."""
    try:
        with profile:
            exec(code, names)
    except BaseException as error:  # noqa: B902 - SystemExit and KeyboardInterrupt are results, too
        return error.with_traceback(error.__traceback__.tb_next)
    return None


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


def _load(options, program):
    sys.argv[:] = [options.module or program[0], *(program if options.module else program[1:])]
    sys.path.pop(0)
    return _prepare_module(options.module) if options.module else _prepare_script(program[0])


def main(argv):
    parser = _parser()
    ours, program = _split(argv)
    options = parser.parse_args(ours)
    if not options.module and not program:
        parser.error("name a script, or a module with -m")
    try:
        code, names = _load(options, program)
    except (OSError, ImportError, SyntaxError, ValueError) as wrong:
        print(f"tare: {options.module or program[0]}: {wrong}", file=sys.stderr)
        return 2
    profile, process = functions(fast=options.fast, exact_c=options.exact_c), os.getpid()
    error = _run(profile, code, names)
    status = _show(profile, options) if os.getpid() == process else 0
    if error:
        raise error
    return status
