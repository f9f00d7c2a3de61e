# SPDX-License-Identifier: MIT
"""What the Python tests need compiled. tools/run-tests makes all of it before the first of them starts and says so in MADE, which holds
what `make parts` prints: a hundred files that each ask make again cost more than some of their tests, and two makes in one folder at
the same time give each other half-written files."""

import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(os.environ.get("TARE_SRC") or pathlib.Path(__file__).resolve().parents[2])
NO_MAKE = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}  # a make around the tests has settings for its own files


@functools.lru_cache(maxsize=None)
def make(*goals):
    """The paths of what was made; what is there already is left alone."""
    if "MADE" not in os.environ:
        done = subprocess.run(["make", "-s", "--no-print-directory", *goals], cwd=ROOT, env=NO_MAKE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return [ROOT / g for g in goals if "=" not in g]


@functools.lru_cache(maxsize=None)
def is_without(part):
    """Was tare built without this library (its name as `make parts` has it)?"""
    said = os.environ.get("MADE") or subprocess.run(["make", "-s", "parts"], cwd=ROOT, env=NO_MAKE, capture_output=True, text=True, check=True).stdout
    return "without %s:" % part in said
