# SPDX-License-Identifier: MIT
"""Programs whose calls are compared with cProfile's, one function each: run twice, they call the same."""

import asyncio
import collections
import contextlib
import decimal
import functools
import io
import itertools
import json
import operator
import re
import sys
import textwrap


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    fib(12)


def mutual_recursion():
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    even(30)
    odd(7)


class Point:
    count = 0

    def __init__(self, x):
        self.x = x
        Point.count += 1

    def __add__(self, other):
        return Point(self.x + other.x)

    def __getitem__(self, i):
        return self.x + i

    def __len__(self):
        return 3

    def __eq__(self, other):
        return self.x == other.x

    def __hash__(self):
        return hash(self.x)

    def __call__(self, y):
        return max(self.x, y)

    @property
    def double(self):
        return self.x * 2

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def nothing():
        pass


def methods():
    points = [Point(i) for i in range(40)]
    total = functools.reduce(operator.add, points)
    for point in points:
        point[3], len(point), point(5), point.double, Point.make(1), Point.nothing()
    assert total in {*points, total}


def generators():
    def count(n):
        for i in range(n):
            yield i

    def chained(n):
        yield from count(n)
        return n

    list(chained(20))
    dropped = count(5)
    next(dropped)
    dropped.close()
    thrown = count(5)
    next(thrown)
    with contextlib.suppress(ValueError):
        thrown.throw(ValueError)
    sum(x * x for x in range(10))
    sorted(count(9), key=lambda x: -x)


def exceptions():
    def fails(depth):
        if depth == 0:
            raise KeyError(depth)
        fails(depth - 1)

    for _ in range(10):
        with contextlib.suppress(KeyError):
            fails(4)
    for text in ("1", "x", "2"):
        try:
            int(text)
        except ValueError:
            pass
        try:
            {}.pop(text)
        except KeyError:
            pass
    try:
        try:
            fails(1)
        finally:
            len("x")
    except KeyError:
        pass


def c_functions():
    found = []
    for i in range(60):
        found.append(i)
        abs(i), str(i).zfill(4), isinstance(i, int), divmod(i, 7), "x".join(["a", "b"]).upper()
    found.sort(key=operator.neg)
    list(map(str, found)), list(filter(None, found)), dict.fromkeys("abc"), set(found).union({1}), bytes(3).hex()
    list(itertools.accumulate(found)), collections.Counter("hello").most_common(1), decimal.Decimal("1.5").sqrt()
    getattr(found, "append")(3), functools.partial(max, 3)(4), io.StringIO().write("x")


def mixed_sites():
    """One place that calls C and Python functions in turn."""
    for i in range(200):
        for function in (len, lambda text: text, str.upper):
            function("abc")


def text_work():
    re.purge()
    re.sub(r"(\w+)-(\d+)", lambda m: m.group(2) + m.group(1), "ab-12 cd-34")
    data = {"a": [1, 2.5, None, {"b": "c"}], "d": "e" * 30}
    json.loads(json.dumps(data, indent=1, sort_keys=True))
    textwrap.fill("some words " * 20, 30)


def tasks():
    async def leaf(n):
        await asyncio.sleep(0)
        return n

    async def middle(n):
        return await leaf(n) + await leaf(n)

    async def all_of_them():
        async def agen():
            for i in range(3):
                await asyncio.sleep(0)
                yield i

        async for _ in agen():
            pass
        return await asyncio.gather(*(middle(i) for i in range(5)))

    loop = asyncio.new_event_loop()
    loop.slow_callback_duration = 3600  # a busy machine makes no difference to the calls
    try:
        loop.run_until_complete(all_of_them())
    finally:
        loop.close()


def made_code():
    for i in range(30):
        names = {}
        exec(f"def made(x):\n    return x + {i}", names)
        names["made"](1)


def deep():
    def down(n):
        return n and down(n - 1)

    down(min(sys.getrecursionlimit() - 200, 700))


PROGRAMS = (recursion, mutual_recursion, methods, generators, exceptions, c_functions, mixed_sites, text_work, tasks, made_code, deep)
