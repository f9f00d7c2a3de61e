# SPDX-License-Identifier: MIT
"""The line profiler on every CPython: hits, times, threads, generators, exceptions, recursion, what it refuses, what it survives."""

import functools
import gc
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import tare


def hits(profile, function):
    """{offset of the line from the def: hits}"""
    first = function.__code__.co_firstlineno
    return {line.line_number - first: line.hits for line in profile.lines() if line.function.split(".")[-1] == function.__name__ and line.hits}


def loop(n):
    total = 0
    for i in range(n):
        total += i
    return total


def branches(x):
    if x > 0:
        return "more"
    return "less"


def generator(n):
    for i in range(n):
        got = yield i
        if got:
            yield got


def raises():
    try:
        loop(1)
        raise KeyError
    except KeyError:
        pass
    raise ValueError


def recursive(n):
    if n == 0:
        return 0
    return recursive(n - 1) + 1


def sleeps():
    time.sleep(0.02)
    time.sleep(0.06)


class Counting(unittest.TestCase):
    def test_hits(self):
        with tare.lines(loop, branches) as profile:
            loop(10)
            loop(5)
            branches(1)
            branches(-1)
            branches(-2)
        self.assertEqual(hits(profile, loop), {1: 2, 2: 17, 3: 15, 4: 2})
        self.assertEqual(hits(profile, branches), {1: 3, 2: 1, 3: 2})

    def test_other_functions_are_left_alone(self):
        with tare.lines(branches) as profile:
            loop(3)
        self.assertEqual(profile.lines(), [])
        self.assertIn("no line", profile.text())

    def test_callees_count_for_the_line_that_calls(self):
        def outer():
            sleeps()
            return 1

        with tare.lines(outer, sleeps) as profile:
            outer()
        time_of = {(line.function.split(".")[-1], line.source.strip()): line.time_s for line in profile.lines()}
        self.assertGreater(time_of["outer", "sleeps()"], 0.079)
        self.assertGreater(time_of["sleeps", "time.sleep(0.06)"], 0.059)
        share = {line.source.strip(): line.time_percent for line in profile.lines()}
        both = [time_of["sleeps", source] for source in ("time.sleep(0.02)", "time.sleep(0.06)")]
        self.assertAlmostEqual(share["time.sleep(0.06)"], 100 * both[1] / sum(both), places=3)

    def test_recursion_counts_time_once(self):
        with tare.lines(recursive) as profile:
            start = time.perf_counter()
            recursive(200)
            took = time.perf_counter() - start
        self.assertEqual(hits(profile, recursive), {1: 201, 2: 1, 3: 200})
        self.assertLessEqual(max(line.time_s for line in profile.lines()), took)

    def test_generators(self):
        begun = time.perf_counter()
        with tare.lines(generator) as profile:
            self.assertEqual(list(generator(3)), [0, 1, 2])
            time.sleep(0.15)
            source = generator(2)
            next(source)
            time.sleep(0.15)
            self.assertEqual(source.send("x"), "x")
            source.close()
        elapsed = time.perf_counter() - begun
        self.assertEqual(hits(profile, generator)[2], 4)
        self.assertLess(sum(line.time_s for line in profile.lines()), elapsed - 0.3)  # what the others slept is not the generator's

    def test_exceptions(self):
        with tare.lines(raises, loop) as profile:
            with self.assertRaises(ValueError):
                raises()
            loop(1)
        counted = hits(profile, raises)
        self.assertEqual((counted[2], counted[3], counted[6]), (1, 1, 1))
        self.assertEqual(hits(profile, loop)[1], 2)

    def test_threads(self):
        before = threading.Event()
        late = threading.Thread(target=lambda: (before.wait(), loop(10)), daemon=True)
        late.start()
        with tare.lines(loop) as profile:
            before.set()
            threads = [threading.Thread(target=loop, args=(10,)) for _ in range(20)]
            for t in threads:
                t.start()
            for t in [*threads, late]:
                t.join()
        self.assertEqual(hits(profile, loop)[3], 210)

    def test_enabled_again_adds_up(self):
        profile = tare.lines(loop)
        for _ in range(3):
            with profile:
                loop(4)
            loop(4)
        self.assertEqual(hits(profile, loop)[3], 12)

    def test_added_while_it_runs(self):
        profile = tare.lines()
        with profile:
            loop(3)
            profile.add(loop)
            loop(3)
        self.assertEqual(hits(profile, loop)[3], 3)


    def test_a_generator_that_begins_is_at_no_line(self):
        with tare.lines(generator) as profile:
            list(generator(3))
            next(generator(3))
        self.assertEqual([line for line in profile.lines() if not line.hits], [])


class Choosing(unittest.TestCase):
    def test_kinds(self):
        class Model:
            def forward(self, x):
                return x

            @staticmethod
            def fixed():
                return 1

            @classmethod
            def made(cls):
                return 2

            @property
            def size(self):
                return 3

        def use(model):
            model.forward(1), Model.fixed(), Model.made(), model.size

        for what in (Model, (Model.forward, Model.fixed, Model.made, Model.size), (functools.partial(Model.fixed), Model().forward)):
            with tare.lines(*(what if isinstance(what, tuple) else (what,))) as profile:
                use(Model())
            self.assertGreaterEqual(len(profile.functions()), 2, what)

    def test_module(self):
        module = types.ModuleType("made_up")
        exec(compile("def f():\n    return 1\n", "made_up.py", "exec"), vars(module))
        with tare.lines(module) as profile:
            module.f()
        self.assertEqual([line.hits for line in profile.lines()], [1])

    def test_decorated(self):
        def double(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)

            return wrapper

        @double
        def inner():
            return 1

        profile = tare.lines()

        @profile
        def other():
            return 2

        profile.add(inner)
        with profile:
            inner()
            other()
        self.assertEqual(len(profile.lines()), 2)

    def test_wrapped_members_and_classes_that_name_others(self):
        class Model:
            @functools.lru_cache
            def cached(self):
                return 1

            @tare.scope("scoped")
            def scoped(self):
                return 2

            class Inner:
                def method(self):
                    return 3

        Model.itself, Model.other = Model, threading.Thread
        with tare.lines(Model) as profile:
            model = Model()
            self.assertEqual((model.cached(), model.scoped(), model.Inner().method()), (1, 2, 3))
            thread = threading.Thread(target=len, args=("",))
            thread.start()
            thread.join()
        self.assertEqual([f.name.split(".")[-1] for f in profile.functions()], ["cached", "scoped", "method"])

    def test_source_of_code_without_a_file(self):
        names = {}
        exec("def made(n):\n    return n\n", names)
        with tare.lines(names["made"]) as profile:
            names["made"](1)
        self.assertEqual([(line.line_number, line.hits, line.source) for line in profile.lines()], [(2, 1, "")])
        self.assertIn("made, <string>:1", profile.text())

    def test_what_has_no_lines(self):
        for bad in (int, len, 3, "text", None):
            with self.assertRaises(TypeError):
                tare.lines(bad)


class Faults(unittest.TestCase):
    def test_one_that_was_rebound_while_it_ran_is_over(self):
        for _ in range(3):  # a notebook's cell that is run again
            profile = tare.lines(loop)
            profile.enable()
        loop(2)
        profile.disable()
        self.assertTrue(profile.lines())

    def test_nested_profiles_are_refused(self):
        with tare.lines(loop):
            with self.assertRaises(RuntimeError):
                tare.lines(loop).enable()

    def test_twice(self):
        profile = tare.lines(loop)
        profile.disable()
        profile.enable()
        profile.enable()
        loop(1)
        profile.disable()
        profile.disable()
        self.assertEqual(hits(profile, loop)[3], 1)

    @unittest.skipIf(sys.version_info >= (3, 12), "3.12 and newer: tracers and we do not meet")
    def test_another_tracer_is_left_in_place(self):
        def tracer(frame, event, arg):
            return None

        sys.settrace(tracer)
        try:
            with self.assertRaises(RuntimeError):
                tare.lines(loop).enable()
            self.assertIs(sys.gettrace(), tracer)
        finally:
            sys.settrace(None)

    @unittest.skipIf(sys.version_info >= (3, 12), "3.12 and newer: tracers and we do not meet")
    def test_a_tracer_that_takes_our_place_is_told(self):
        profile = tare.lines(loop)
        with profile:
            loop(1)
            sys.settrace(None)
            loop(1)
        self.assertIn("sys.settrace", " ".join(profile.trouble))

    @unittest.skipIf(sys.version_info < (3, 12), "before 3.12 there are no tool ids")
    def test_all_tool_ids_taken(self):
        for tool in (1, 2, 3, 4):
            sys.monitoring.use_tool_id(tool, "other")
        try:
            with self.assertRaises(RuntimeError):
                tare.lines(loop).enable()
        finally:
            for tool in (1, 2, 3, 4):
                sys.monitoring.free_tool_id(tool)

    def test_code_that_goes_away(self):
        profile = tare.lines()
        for i in range(50):
            names = {}
            exec(f"def f():\n    return {i}\n", names)
            profile.add(names["f"])
            with profile:
                names["f"]()
            del names
            gc.collect()
        self.assertEqual(sum(line.hits for line in profile.lines()), 50)

    def test_recursion_to_the_limit(self):
        def fall():
            return fall()

        with tare.lines(fall) as profile:
            with self.assertRaises(RecursionError):
                fall()
        self.assertGreater(profile.lines()[0].hits, 100)

    def test_at_exit_and_in_children(self):
        code = """
import os, sys, tare
def f():
    return 1
profile = tare.lines(f)
profile.enable()
child = os.fork()
f()
if child:
    os.waitpid(child, 0)
sys.exit(3)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (3, ""))

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays")
    def test_cycles_keep_memory(self):
        def once():
            with tare.lines(loop):
                loop(1)

        for _ in range(300):
            once()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(2000):
            once()
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 2000)

    def test_output(self):
        with tare.lines(loop) as profile:
            loop(2)
        out = io.StringIO()
        profile.print(file=out)
        self.assertIn("total += i", out.getvalue())
        self.assertIn("self: tare's own cost", out.getvalue())
        self.assertIn("<pre style=\"white-space:pre", profile._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            with open(profile.save(os.path.join(folder, "x.json"))) as file:
                saved = json.load(file)
            self.assertEqual(saved["functions"][0]["lines"][2]["hits"], 2)
            profile.save(os.path.join(folder, "x.txt"))
            with self.assertRaises(ValueError):
                profile.save(os.path.join(folder, "x.bin"))
            with self.assertRaises(OSError):
                profile.save(os.path.join(folder, "no", "x.txt"))


class Command(unittest.TestCase):
    def run_it(self, *args, status=0):
        done = subprocess.run([sys.executable, "-m", "tare", "lines", *args], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_script(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "s.py")
            with open(script, "w") as f:
                f.write("import sys\ndef f(x):\n    return x\nfor i in range(7):\n    f(i)\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")
            said = self.run_it(script, "4", "--x", status=4).stdout
            self.assertIn("['4', '--x']", said)
            self.assertRegex(said, r"\n +3 +7 ")
            said = self.run_it("-f", "f", script, "0").stdout
            self.assertNotIn("for i in range", said)
            self.assertIn("no function named g", self.run_it("-f", "g", script, status=2).stderr)
            self.run_it("-o", os.path.join(folder, "x.json"), script, "0")
            self.run_it("-o", os.path.join(folder, "no", "x.json"), script, "0", status=2)
            self.assertIn("ending must say what to write", self.run_it("-o", os.path.join(folder, "x.bin"), script, "0", status=2).stderr)
            self.run_it(os.path.join(folder, "missing.py"), status=2)


if __name__ == "__main__":
    unittest.main()
