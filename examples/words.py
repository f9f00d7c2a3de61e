# SPDX-License-Identifier: MIT
"""A program to profile: words counted in three threads. See docs/python/functions.md."""

import collections
import re
import threading

TEXT = "the quick brown fox jumps over the lazy dog " * 2000


def clean(word):
    return word.strip().lower()


def count(text):
    return collections.Counter(clean(word) for word in re.findall(r"\w+", text))


def top(text, n):
    return count(text).most_common(n)


if __name__ == "__main__":
    threads = [threading.Thread(target=top, args=(TEXT, 3), name=f"reader-{i}") for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(top(TEXT, 1))
