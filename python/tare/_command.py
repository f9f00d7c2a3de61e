# SPDX-License-Identifier: MIT
"""The command `tare` that the package carries: where it is, and running it; and what command lines of the package share."""

import os
import shutil
import subprocess
import sys

_CARRIED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "tare")


def path():
    """The carried binary, else one on PATH. RuntimeError with the cause when there is none."""
    found = _CARRIED if os.access(_CARRIED, os.X_OK) else shutil.which("tare")
    if not found:
        raise RuntimeError(
            "the command `tare` is not in this package and not on PATH: it was built without the libraries the command "
            "needs (make deps in the sources, then pip install . again)"
        )
    return found


def call(*args, stdin=None):
    """Standard output of `tare ARGS`. RuntimeError with tare's own words when it exits with 2 or 3."""
    done = subprocess.run([path(), *map(str, args)], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip() or f"tare {args[0]}: exit status {done.returncode}")
    return done.stdout


def keep_run(path, history=True, folder=None):
    """Put a run document into the history, as `tare bench` does: the file `history`, else the one of `folder`, else the command's own choice;
    False: nowhere. What fails is a warning: the document is there, and `tare history import` adds it later."""
    if history is False:
        return
    where = ["--output-dir", folder] if folder is not None else []
    try:
        call("history", "import", path, *(where if history is True else ["--history", history]))
    except (RuntimeError, OSError) as why:
        import warnings

        warnings.warn(f"this run is not in the history: {why}", RuntimeWarning, stacklevel=3)


def main(argv=None):
    """Entry point of the script `tare`: becomes the binary."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        binary = path()
    except RuntimeError as missing:
        print(f"tare: {missing}", file=sys.stderr)
        return 3
    os.environ.setdefault("TARE_PYTHON", sys.executable)  # which runs what `tare bench py:..` names
    os.execv(binary, ["tare", *argv])


# ---- python -m tare bench embed.py:encode ..: `tare bench py:embed.py:encode ..` with this very Python ----

_FUNCTION = r"[^-:=][^:=]*\.py:[\w.]+|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


def mark_function(words):
    """The words with "py:" before the one that names a function; values of options and a command after -- are let be."""
    import re  # not above: whoever types `tare` waits for what this module imports

    marked = list(words)
    for i, word in enumerate(words):
        if word == "--":
            break
        value = i > 0 and words[i - 1].startswith("-") and "=" not in words[i - 1]
        if re.fullmatch(_FUNCTION, word) and not word.startswith("py:") and (".py:" in word or not value):
            marked[i] = "py:" + word
            break
    return marked


def bench(argv):
    return main(["bench", *mark_function(argv)])


# ---- whole numbers: `type=` of argparse options, with errors in words instead of names of functions ----


def _refuse(why):
    from argparse import ArgumentTypeError

    raise ArgumentTypeError(why)


def count(text):
    try:
        number = int(text)
    except ValueError:
        number = _refuse(f"'{text}' is not a whole number")
    return number if number >= 1 else _refuse(f"{text} is below 1")


def counts(text):
    numbers = [count(word) for word in text.split(",")]
    return numbers if len(set(numbers)) == len(numbers) else _refuse(f"{text}: a number is named twice")
