# SPDX-License-Identifier: MIT
"""The command `tare` that the package carries: where it is, and running it."""

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
