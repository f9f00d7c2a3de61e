# SPDX-License-Identifier: MIT
"""Programs whose answer is known: each has two parts, one of many calls and one of few, and the share of the first in the time of both
is measured without a profiler, by the thread's CPU time, in turn with the profiled runs. For the tests and for bench/py_truth."""

import os
import subprocess
import sys
import threading
import time
from typing import NamedTuple

STEPS = tuple(range(2000))


def few(times):
    """The other part: long calls."""
    for _ in range(times):
        work()


def work():
    total = 0
    for i in STEPS:
        total += i * 3 ^ 5


# ---- parts of many calls: `times` rounds of about as much work as a call of work() ----


def nothing():
    pass


def tiny(times):
    for _ in range(times):
        for _ in STEPS:
            nothing()


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def recursion(times):
    for _ in range(times):
        fib(15)


def c_callees(times):
    found = []
    for _ in range(times):
        for i in STEPS:
            abs(i)
            found.append(i)
        found.clear()


def count(steps):
    for i in steps:
        yield i


def generators(times):
    for _ in range(times):
        for _ in count(STEPS):
            pass


class Point:
    def __init__(self):
        self.x = 1

    def move(self, by):
        self.x += by

    @property
    def twice(self):
        return self.x * 2


def methods(times):
    point = Point()
    for _ in range(times):
        for i in STEPS:
            point.move(i)
            point.twice


def closures(times):
    def make(k):
        def add(a, b=2):
            return a + b + k

        return add

    add = make(3)
    for _ in range(times):
        for i in STEPS:
            add(i)
            add(i, b=1)


def comprehensions(times):
    def half(x):
        return x // 2

    for _ in range(times):
        [[half(x) for x in STEPS[:4]] for _ in STEPS[:200]]
        {x: abs(x) for x in STEPS[:500]}
        sum(x * x for x in STEPS[:500])


class Scale:
    def __init__(self, by):
        self.by = by

    def __getitem__(self, i):
        return i


def negative(x):
    return -x


def callbacks(times):
    """Python functions that C code calls, or an operator: no place in Python code calls them."""
    scale = Scale(3)
    for _ in range(times):
        sorted(STEPS[:900], key=negative)
        for _ in map(negative, STEPS[:500]):
            pass
        for i in STEPS[:500]:
            scale[i]


def classes(times):
    """Calls of what is no function."""
    for _ in range(times):
        for i in STEPS[:600]:
            str(i)
            int(i)
            Scale(i)


PROGRAMS = {"tiny": (tiny, False), "recursion": (recursion, False), "c": (c_callees, False), "generators": (generators, False),
            "methods": (methods, False), "closures": (closures, False), "comprehensions": (comprehensions, False),
            "callbacks": (callbacks, False), "classes": (classes, False), "threads": (tiny, True)}


# ---- one trial ----


class Trial:
    """A program with both parts cut to about `part_s` of CPU time; rounds of it bare and profiled in turn."""

    def __init__(self, name, part_s=0.02):
        self.many, self.threaded = PROGRAMS[name]
        self.slices = 4
        self.n = [max(1, round(part_s / self.slices / self.alone(part))) for part in (self.many, few)]

    def alone(self, part):
        part(2)
        return min(self._cpu(part, 2) for _ in range(3)) / 2

    @staticmethod
    def _cpu(part, times):
        start = time.thread_time()
        part(times)
        return time.thread_time() - start

    def bare(self):
        """CPU seconds of each part."""
        spent = [0.0, 0.0]
        for _ in range(self.slices):
            for i, part in enumerate((self.many, few)):
                spent[i] += self._cpu(part, self.n[i])
        return spent

    def run(self):
        """The program as it is profiled: slices of the parts in turn, or each part in a thread of its own."""
        if self.threaded:
            threads = [threading.Thread(target=part, args=(n * self.slices,)) for part, n in zip((self.many, few), self.n)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return
        for _ in range(self.slices):
            self.many(self.n[0])
            few(self.n[1])

    def rows(self, profile):
        found = {f.name: f for f in profile.functions()}
        return found[self.many.__name__], found["few"]

    def share(self, profile):
        many, rest = self.rows(profile)
        return many.total_ns / (many.total_ns + rest.total_ns)

    def interval(self, profile):
        """Lowest and highest share that the stated doubts allow."""
        many, rest = self.rows(profile)
        low, high = max(many.total_ns - many.total_doubt_ns, 0.0), many.total_ns + many.total_doubt_ns
        return low / (low + rest.total_ns + rest.total_doubt_ns), high / (high + max(rest.total_ns - rest.total_doubt_ns, 0.0))

    def covers(self, profile, truth, spreads=2):
        """Each run has a share of its own, on a machine that changes its speed: twice the bare runs' spread is no fault of ours."""
        low, high = self.interval(profile)
        return low - spreads * truth.spread <= truth.share <= high + spreads * truth.spread


class Truth(NamedTuple):
    share: float
    spread: float  # of single runs


def median(values):
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2


def options(name, **more):
    """Threads that wait for each other's lock: only the CPU clock tells their shares."""
    return {"clock": "cpu", **more} if PROGRAMS[name][1] else more


def trials(name, make, rounds, part_s=0.02):
    """(trial, truth, profiles) of a program; the truth is the middle of the bare runs between the profiled ones."""
    trial = Trial(name, part_s)
    bare, profiles = [trial.bare()], []
    for _ in range(rounds):
        profile = make()
        with profile:
            trial.run()
        profiles.append(profile)
        bare.append(trial.bare())
    shares = [many / (many + rest) for many, rest in bare]
    middle = median(shares)
    return trial, Truth(middle, 1.48 * median([abs(share - middle) for share in shares])), profiles


class Neighbours:
    """Processes that are busy on the one processor that this one is held to meanwhile."""

    def __init__(self, n):
        self.n, self.processes, self.processors = n, [], os.sched_getaffinity(0)

    def __enter__(self):
        os.sched_setaffinity(0, {max(self.processors)})
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.n)]
        return self

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, self.processors)
