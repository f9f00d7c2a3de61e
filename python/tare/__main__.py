# SPDX-License-Identifier: MIT
"""python -m tare COMMAND: what profiles Python from within, used as `python -m cProfile` is. Other words go to the command `tare`."""

import os
import sys
from importlib import import_module

from tare import _command

# word: (module of the package with main(argv) -> exit status, or module:function, help)
COMMANDS = {
    "functions": ("_program:functions", "why is it slow? all calls of a Python program, by function"),
    "lines": ("_program:lines", "the same line by line, for chosen functions"),
    "profile": ("_model_command", "a PyTorch model: latency, memory, layers; thresholds for CI"),
    "embedding": ("_text_command:embedding", "profile a model that embeds texts: batch sizes, memory, lengths"),
    "nli": ("_text_command:nli", "profile a model that judges pairs of texts, by batch size"),
    "nli-batch": ("_text_command:nli_batch", "find the batch size for such a model; accuracy is checked"),
    "bench": ("_command:bench", "measure a function: python -m tare bench embed.py:encode --inputs texts.txt --batch 8,16"),
}

# What `tare bench py:..`, `tare tune py:..` and a server's /finetuning paths start.
NOT_FOR_PEOPLE = {"_worker": "_worker", "_tune_worker": "_tune_worker", "finetuning": "_finetuning"}


def usage():
    rows = "\n".join(f"  {word:<12} {text}" for word, (_, text) in COMMANDS.items())
    return f"usage: python -m tare COMMAND [options]\n\n{rows}\n\nOther commands are those of `tare`: python -m tare bench model.onnx"


def run(word, argv):
    """The command's exit status. Ctrl-C ends one that measures with a line; in one that runs a program it is the program's to end with."""
    module, _, function = COMMANDS[word][0].partition(":")
    try:
        return getattr(import_module("tare." + module), function or "main")(argv)
    except KeyboardInterrupt:
        if word in ("functions", "lines"):
            raise
        print("\ntare: interrupted; nothing was written", file=sys.stderr)
        return 130


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] in NOT_FOR_PEOPLE:
        return import_module("tare." + NOT_FOR_PEOPLE[argv[0]]).main(argv[1:])
    if argv[0] in COMMANDS:
        return run(argv[0], argv[1:])
    return _command.main(argv)


def main_to_pipe():
    """As main(), where whoever reads the answer may go away: that is no fault to be shown, and nobody is left to see it."""
    try:
        status = main()
        if sys.stdout:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what the interpreter flushes at its end
        return 141  # as of a program that SIGPIPE ended


if __name__ == "__main__":
    sys.exit(main_to_pipe())
