# SPDX-License-Identifier: MIT
"""Whole numbers on the command line: `type=` of argparse options, with errors in words instead of names of functions."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def counts(text: str) -> list[int]:
    numbers = [count(word) for word in text.split(",")]
    if len(set(numbers)) != len(numbers):
        raise argparse.ArgumentTypeError(f"{text}: a number is named twice")
    return numbers
