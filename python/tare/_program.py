# SPDX-License-Identifier: MIT
"""A program run inside a profile, as python SCRIPT and python -m MODULE run it: what `python -m tare functions` and `lines` share."""

import argparse
import importlib.util
import io
import os
import sys
import types
from typing import Any, Callable, NamedTuple, Tuple


class Command(NamedTuple):
    """What differs between `python -m tare functions` and `lines`."""

    parser: argparse.ArgumentParser
    takes_value: Tuple[str, ...]  # options of the parser that are followed by a value
    writer: Callable[[str], Any]  # ValueError for a file name that nothing can be written to
    profile: Callable[[argparse.Namespace, types.CodeType], Any]  # ValueError where the options do not fit the program
    show: Callable[[Any, argparse.Namespace], None]


def parser(word, description, usage, examples):
    """A parser with what both have: the output, and the program."""
    made = argparse.ArgumentParser(
        prog=f"python -m tare {word}",
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
        code = compile(script.read(), path, "exec", dont_inherit=True)
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
    if error and not (status and isinstance(error, SystemExit) and error.code in (None, 0)):
        raise error
    return status


def _show(command, profile, options):
    if not options.output:
        command.show(profile, options)
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


def main(command, argv):
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
    process = os.getpid()
    error = _run(profile, code, names)
    return _end(error, _show(command, profile, options) if os.getpid() == process else 0)
