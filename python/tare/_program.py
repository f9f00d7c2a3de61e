# SPDX-License-Identifier: MIT
"""python -m tare functions | lines: a program run inside a profile, as python SCRIPT and python -m MODULE run it."""

import argparse
import importlib.util
import io
import os
import re
import shutil
import sys
import types
from typing import Any, Callable, NamedTuple, Tuple

from tare import _answers, _tare
from tare._asking import Parser, program


class Command(NamedTuple):
    """What differs between the two."""

    parser: argparse.ArgumentParser
    takes_value: Tuple[str, ...]  # options of the parser that are followed by a value
    writer: Callable[[str], Any]  # ValueError for a file name that nothing can be written to
    profile: Callable[[argparse.Namespace, types.CodeType], Any]  # ValueError where the options do not fit the program
    show: Callable[[Any, argparse.Namespace], None]


def _parser(word, description, usage, examples):
    """A parser with what both have: the output, and the program."""
    made = Parser(
        prog=program(word),
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"%(prog)s [-o FILE] {usage} (-m MODULE | SCRIPT) ...",
        allow_abbrev=False,
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write to FILE, as its ending says, in place of standard output")
    made.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    return made


def _split(argv, takes_value):
    """Our options and the program: what follows -m MODULE or the script is the program's, whatever it looks like."""
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
        text = script.read()
    if b"\0" in text:
        raise ValueError("is no Python program")
    code = compile(text, path, "exec", dont_inherit=True)
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    return code, _main_module(path)


def _load(module, program):
    """(code, names to run it in) of `-m module` or of the script program[0]; sys.argv and sys.path as the program expects them."""
    sys.argv[:] = [module or program[0], *(program if module else program[1:])]
    sys.path.pop(0)
    return _prepare_module(module) if module else _prepare_script(program[0])


def _refusal(subject, wrong):
    """One line about a program that cannot be run: the system's words without the number and the path that Python adds."""
    return f"tare: {subject}: {getattr(wrong, 'strerror', None) or wrong}"


def _run(profile, code, names):
    """The program's exception, traceback without our frames, or None. Only the process that began it has results to show."""
    try:
        with profile:
            exec(code, names)
    except BaseException as error:  # noqa: B902 - SystemExit and KeyboardInterrupt are results, too
        return error.with_traceback(error.__traceback__.tb_next)
    return None


def _check_output(path, writer):
    """ValueError now and not after the program's hours, if nothing can be written there, or not as such a file."""
    if path is None:
        return
    if not os.access(os.path.dirname(path) or ".", os.W_OK):
        raise ValueError(f"{path}: the folder is missing or not writable")
    writer(path)


def _end(error, status):
    """Ends as the program did; with our status where the program had nothing to complain of."""
    if error is None or (status and isinstance(error, SystemExit) and error.code in (None, 0)):
        return status
    if not isinstance(error, Exception):
        raise error
    sys.excepthook(type(error), error, error.__traceback__)  # here: raised further it would begin with our frames
    return 1


def _show(command, profile, options):
    if not options.output:
        command.show(profile, options)
        return 0
    if getattr(options, "sort", None):
        profile.written = (options.sort, options.rows or None)
    try:
        profile.save(options.output)
    except (OSError, ValueError, RuntimeError) as failed:
        print(f"tare: {failed}", file=sys.stderr)
        return 3
    print(f"tare: wrote {options.output}", file=sys.stderr)
    for why in profile.trouble:
        print(f"tare: incomplete: {why}", file=sys.stderr)
    return 0


_SPAWNED = re.compile(r"from multiprocessing\.(spawn|resource_tracker|forkserver) import")


def _spawned(argv):
    """What multiprocessing starts with these words: spawn, resource_tracker, forkserver; None: it was not multiprocessing."""
    found = (_SPAWNED.match(os.fsdecode(word)) for word in argv if isinstance(word, (str, bytes)))
    return next((one[1] for one in found if one), None)


def _started(events):
    """(how many processes the program has started, {name: how many}, there are more); those that are copies of this one have no name."""
    copies, names, before, more = 0, {}, None, False
    for event, what in events:
        name = None
        if event == "fork_exec":
            name = _spawned(what)
            copies += name == "spawn"
            name = None if name == "spawn" else name
            more |= name == "forkserver"  # which starts the workers in our place
        elif event in ("os.fork", "os.forkpty"):
            copies += 1
        elif (event, before) != ("os.posix_spawn", ("subprocess.Popen", what)):  # that is how Popen started it
            path = "sh" if event == "os.system" else what
            name = os.path.basename(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else repr(path)
        if name:
            names[name] = names.get(name, 0) + 1
        before = event, what
    return copies + sum(names.values()), names, more


def _tell_of_children(events):
    n, names, more = _started(events)
    if not n:
        return
    listed = ", ".join(name if times == 1 else f"{times} {name}" for name, times in names.items())
    print(f"tare: {n} child process{'es' if n > 1 else ''} of this program{f' ({listed})' if listed else ''}"
          f"{', and those that the fork server started' if more else ''}: not in this profile, only the first process is", file=sys.stderr)


def _options(command, argv):
    """(options, the program's words). Ends with 2 where they make no sense."""
    ours, program = _split(argv, command.takes_value)
    options = command.parser.parse_args(ours)
    if not options.module and not program:
        command.parser.error("name a script, or a module with -m")
    try:
        _check_output(options.output, command.writer)
    except ValueError as wrong:
        command.parser.error(f"argument -o/--output: {wrong}")
    return options, program


def _main(command, argv):
    """Runs the program inside the profile; ends as it did."""
    options, program = _options(command, argv)
    subject = options.module or program[0]
    try:
        code, names = _load(options.module, program)
        profile = command.profile(options, code)
    except (OSError, ImportError, SyntaxError, ValueError) as wrong:
        print(_refusal(subject, wrong), file=sys.stderr)
        return 2
    profile.title = options.module or os.path.basename(subject)
    process, children = os.getpid(), _tare.functions_children()
    error = _run(profile, code, names)
    if os.getpid() != process:
        return _end(error, 0)
    children = tuple(children)  # without those that we start to write the profile
    status = _show(command, profile, options)
    _tell_of_children(children)
    return _end(error, status)


# ---- functions ----

_FUNCTIONS_EXAMPLES = """examples:
  python -m tare functions script.py arg          table on standard output when the script ends
  python -m tare functions -o out.prof -m module  for pstats and snakeviz; .txt, .json (speedscope), .folded, .html likewise"""


def sort_word(word):
    try:
        _answers.sort_key(word)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return word


def _show_functions(profile, options):
    """Where the time went, from the top; then which functions spent it themselves."""
    tree = profile.tree(options.all, 200 if options.all else 40)
    if tree:
        print(f"{tree}\n")
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
    print(_answers.functions_text(profile, options.sort, 20 if options.rows is None else options.rows or None, width))


def functions(argv):
    """As python -m cProfile."""
    from tare._functions import functions, writer

    about, usage = "Profiles all calls of a Python program, in all threads.", "[-s ORDER] [--rows N] [--all] [--fast] [--no-exact-c] [--clock wall|cpu]"
    parser = _parser("functions", about, usage, _FUNCTIONS_EXAMPLES)
    parser.add_argument("-s", "--sort", default="self", type=sort_word, metavar="ORDER", help="self (default), total, calls, name, file, ...")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of the table (default: 20 on standard output, all in files; 0: all)")
    parser.add_argument("--all", action="store_true", help="show in the tree what libraries call within themselves, too")
    parser.add_argument("--fast", action="store_true", help="Python functions only, at a fraction of the cost")
    parser.add_argument("--exact-c", action=argparse.BooleanOptionalAction, default=True, help="count every C call (3.12 and newer: --no-exact-c costs less)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="wall time (default), or without waiting")
    command = Command(
        parser=parser,
        takes_value=("-o", "--output", "-s", "--sort", "--rows", "--clock"),
        writer=writer,
        profile=lambda options, _: functions(fast=options.fast, exact_c=options.exact_c, clock=options.clock),
        show=_show_functions,
    )
    return _main(command, argv)


# ---- lines ----

_LINES_EXAMPLES = """examples:
  python -m tare lines script.py arg                       all functions written in script.py
  python -m tare lines -f train_step -f Model.forward script.py
  python -m tare lines -o lines.txt -m package.module      or .json"""


def _wanted(inside, names):
    """Of the code objects written in the program those that the names choose."""
    called = [{code.co_name, getattr(code, "co_qualname", code.co_name)} for code in inside]
    missing = [name for name in names if not any(name in both for both in called)]
    if missing:
        raise ValueError(f"no function named {', '.join(missing)} in it")
    return [code for code, both in zip(inside, called) if not names or both & set(names)]


def lines(argv):
    """Of all functions of the program, or of those named."""
    from tare._lines import inner_codes, lines, writer

    parser = _parser("lines", "Profiles the lines of a Python program's functions, in all threads.", "[-f NAME]...", _LINES_EXAMPLES)
    parser.add_argument("-f", "--function", action="append", default=[], metavar="NAME",
                        help="only functions of this name, qualified or not (repeatable; default: all of the script)")
    command = Command(
        parser=parser,
        takes_value=("-o", "--output", "-f", "--function"),
        writer=writer,
        profile=lambda options, code: lines(*_wanted(list(inner_codes(code)), options.function)),
        show=lambda profile, _: profile.print(),
    )
    return _main(command, argv)
