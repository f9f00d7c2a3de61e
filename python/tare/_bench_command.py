# SPDX-License-Identifier: MIT
"""python -m tare bench embed.py:encode ..: `tare bench py:embed.py:encode ..` with this very Python."""

import re

from tare import _command

_FUNCTION = re.compile(r"[^-:=][^:=]*\.py:[\w.]+|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def mark_function(words):
    """The words with "py:" before the one that names a function; values of options and a command after -- are let be."""
    marked = list(words)
    for i, word in enumerate(words):
        if word == "--":
            break
        value = i > 0 and words[i - 1].startswith("-") and "=" not in words[i - 1]
        if _FUNCTION.fullmatch(word) and not word.startswith("py:") and (".py:" in word or not value):
            marked[i] = "py:" + word
            break
    return marked


def main(argv):
    return _command.main(["bench", *mark_function(argv)])
