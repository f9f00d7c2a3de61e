# SPDX-License-Identifier: MIT
"""profile_function on every CPython: which calls are profiled and saved, and that the decorated function behaves as without it."""

import asyncio
import glob
import inspect
import multiprocessing
import os
import pstats
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings

import tare


def helper(n):
    return sum(range(n))


def names_in(pair):
    """{function name: calls} of a saved .prof, read with the standard library."""
    stats = pstats.Stats(pair[0]).stats
    return {name: row[1] for (_, _, name), row in stats.items()}


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "profiling_results")

    def decorate(self, function, name="work", **options):
        return tare.profile_function(name=name, folder=self.folder, **options)(function)

    def files(self, pattern=None):
        """Names of all files, or paths of those that match."""
        return glob.glob(os.path.join(self.folder, pattern)) if pattern else sorted(os.listdir(self.folder))

    def script(self, text):
        """Runs a program of its own in the folder's parent; its standard output."""
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], cwd=os.path.dirname(self.folder), timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Pairs(InAFolder):
    def test_a_call_leaves_a_pair_that_pstats_reads(self):
        work = self.decorate(lambda: [helper(10) for _ in range(18)], name="embed_query")
        before = int(time.time())
        self.assertEqual(work(), [45] * 18)
        (pair,) = work.profile.saved
        stamp = int(os.path.basename(pair[0])[len("embed_query_"):-len(".prof")])
        self.assertLessEqual(abs(stamp - before), 60)
        self.assertEqual(self.files(), ["embed_query_%d.prof" % stamp, "embed_query_%d.txt" % stamp])
        self.assertEqual(names_in(pair)["helper"], 18)
        with open(pair[1], encoding="utf-8") as file:
            text = file.read()
        columns = next(line for line in text.splitlines() if "ncalls" in line).split()
        self.assertEqual(columns[:6] + columns[-1:], ["ncalls", "tottime", "%", "percall", "cumtime", "percall", "filename:lineno(function)"])
        row = next(line for line in text.splitlines() if line.endswith("(helper)")).split()
        self.assertEqual((row[0], row[-2]), ("18", "-"))  # single calls are not asked for how long they waited
        self.assertIn("measured before: too few calls", text)

    def test_pairs_of_one_second_do_not_replace_each_other(self):
        work = self.decorate(helper, interval=0)
        for _ in range(5):
            work(3)
        self.assertEqual(len({pair[0] for pair in work.profile.saved}), 5)
        self.assertEqual(len(self.files()), 10)

    def test_names_that_are_no_file_names(self):
        work = self.decorate(helper, name="../a b/c\n")
        work(3)
        self.assertEqual(os.path.dirname(work.profile.saved[0][0]), self.folder)
        self.assertEqual(names_in(work.profile.saved[0])["helper"], 1)

    def test_what_cannot_be_written_is_a_warning_once(self):
        with open(self.folder, "w", encoding="utf-8"):
            pass
        work = self.decorate(helper, interval=0)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertEqual([work(4), work(4)], [6, 6])
        self.assertEqual([w.category for w in seen], [RuntimeWarning])
        self.assertIn("work", str(seen[0].message))
        self.assertEqual(work.profile.saved, [])


@unittest.skipIf(sys.version_info < (3, 12), "sys.monitoring is new in 3.12")
class Between(InAFolder):
    """From 3.12 on events stay on for a while after a profiled call, since the next one may be near."""

    def tools(self):
        return [name for name in map(sys.monitoring.get_tool, range(6)) if name]

    def test_events_are_switched_off_when_no_call_follows(self):
        work = self.decorate(helper, at_exit=True)
        for _ in range(20):
            work(3)
            helper(3)
        self.assertEqual(self.tools(), ["tare.functions"])
        for _ in range(1000):
            helper(3)
        self.assertEqual(self.tools(), [])
        for _ in range(5):
            work(3)
        self.assertEqual(names_in(work.profile.save())["helper"], 25)

    def test_what_runs_between_is_not_recorded_and_others_may_profile(self):
        work = self.decorate(lambda: helper(3), at_exit=True)
        for _ in range(10):
            work()
            with tare.functions() as other:
                helper(3)
            self.assertEqual([f.calls for f in other.functions() if f.name == "helper"], [1])
            self.assertEqual(self.tools(), [])
            work()
            for _ in range(20):
                helper(1)
        self.assertEqual(names_in(work.profile.save())["helper"], 20)

    def test_switched_off_in_the_middle_of_exceptions_and_threads(self):
        def fall(n):
            if not n:
                raise ValueError
            fall(n - 1)

        def catch(n):
            try:
                fall(n)
            except ValueError:
                return 1

        def run():
            for n in range(30):
                work(3)
                catch(n * 7 % 90)

        work = self.decorate(catch, at_exit=True)
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(work.profile.calls, 240)
        self.assertGreaterEqual(names_in(work.profile.save())["catch"], work.profile.profiled)

    def test_a_number_that_is_taken_away(self):
        work = self.decorate(helper, at_exit=True)
        work(3)
        (tool,) = [id for id in range(6) if sys.monitoring.get_tool(id)]
        sys.monitoring.free_tool_id(tool)
        sys.monitoring.use_tool_id(tool, "thief")
        self.addCleanup(sys.monitoring.free_tool_id, tool)
        self.assertEqual([work(3) for _ in range(5)], [3] * 5)
        self.assertEqual(sys.monitoring.get_tool(tool), "thief")


class Conditions(InAFolder):
    def test_every_nth_call(self):
        work = self.decorate(helper, every=4, interval=0)
        for _ in range(9):
            work(3)
        self.assertEqual((work.profile.calls, work.profile.profiled, len(work.profile.saved)), (9, 3, 3))

    def test_one_pair_an_interval(self):
        work = self.decorate(helper, interval=3600)
        for _ in range(50):
            work(3)
        self.assertEqual((work.profile.calls, work.profile.profiled), (50, 1))

    def test_only_slow_calls(self):
        work = self.decorate(time.sleep, slower_than=0.2, interval=0, sure=True)
        for seconds in (0, 0.25, 0):
            work(seconds)
        self.assertEqual((work.profile.profiled, work.profile.dropped, len(self.files("*.prof"))), (1, 2, 1))

    def test_a_slow_call_has_the_next_ones_profiled(self):
        work = self.decorate(time.sleep, slower_than=0.2, interval=0)
        for seconds, profiled, dropped in ((0, 0, 0), (0.25, 0, 0), (0, 0, 1), (0.25, 1, 1), (0, 1, 1)):
            work(seconds)
            self.assertEqual((work.profile.profiled, work.profile.dropped), (profiled, dropped))
        self.assertEqual(names_in(work.profile.saved[0]), {"<built-in method time.sleep>": 1})
        work(0.25)
        for _ in range(30):
            work(0)
        self.assertEqual(work.profile.dropped, 11)

    def test_a_batch_is_one_pair(self):
        work = self.decorate(lambda: helper(5), batch=3, interval=0)
        for _ in range(7):
            work()
        self.assertEqual([names_in(pair)["helper"] for pair in work.profile.saved], [3, 3])
        self.assertEqual(names_in(work.profile.save())["helper"], 1)
        self.assertIsNone(work.profile.save())

    def test_a_batch_of_slow_calls_has_no_fast_ones_in_it(self):
        def call(slow):
            return time.sleep(0.15) if slow else helper(3)

        work = self.decorate(call, batch=2, slower_than=0.1, interval=0, sure=True)
        for slow in (False, True, False, True, True):
            work(slow)
        self.assertEqual([names_in(pair).get("helper") for pair in work.profile.saved], [None])
        self.assertEqual(names_in(work.profile.saved[0])["call"], 2)
        self.assertEqual(names_in(work.profile.save())["call"], 1)

    def test_at_exit(self):
        self.script("""
            import tare
            @tare.profile_function(name="late", at_exit=True)
            def late(): return len("abc")
            for _ in range(20): late()
            assert late.profile.saved == []
        """)
        (path,) = self.files("late_*.prof")
        self.assertEqual(names_in((path,))["late"], 20)
        self.assertEqual(len(self.files("late_*.txt")), 1)

    def test_sys_exit_and_what_is_left_of_a_batch(self):
        self.script("""
            import sys, tare
            @tare.profile_function(batch=10)
            def leave(code): sys.exit(code)
            leave(0)
        """)
        self.assertEqual(names_in(self.files("leave_*.prof"))["leave"], 1)

    def test_bad_options_say_what_is_wrong(self):
        for options, word in (({"every": 0}, "every"), ({"batch": 1.5}, "batch"), ({"slower_than": -1}, "slower_than"),
                              ({"interval": float("nan")}, "interval"), ({"interval": "1s"}, "interval")):
            with self.assertRaisesRegex(ValueError, word):
                tare.profile_function(**options)
        with self.assertRaisesRegex(TypeError, "staticmethod"):
            tare.profile_function()(type("Some", (), {}))


class Behaviour(InAFolder):
    def test_it_looks_like_the_function(self):
        def named(a: int, *, b: str = "x") -> str:
            """Words."""
            return b * a

        work = self.decorate(named)
        self.assertEqual((work.__name__, work.__doc__, work.__wrapped__), ("named", "Words.", named))
        self.assertEqual(inspect.signature(work), inspect.signature(named))
        self.assertEqual(work(2, b="y"), "yy")

    def test_without_parentheses_and_without_a_name(self):
        os.makedirs(self.folder)
        here = os.getcwd()
        os.chdir(os.path.dirname(self.folder))
        self.addCleanup(os.chdir, here)
        work = tare.profile_function(helper)
        work(2)
        self.assertTrue(self.files()[0].startswith("helper_"))

    def test_methods(self):
        decorate = tare.profile_function(name="method", folder=self.folder, interval=0)

        class Model:
            def __init__(self):
                self.seen = []

            @decorate
            def add(self, value):
                self.seen.append(value)
                return self

            @staticmethod
            @decorate
            def twice(value):
                return 2 * value

        model = Model()
        self.assertEqual(model.add(1).add(2).seen, [1, 2])
        self.assertEqual(Model.twice(4), 8)

    def test_exceptions_pass_and_are_profiled(self):
        def fail():
            helper(3)
            raise KeyError("mine")

        work = self.decorate(fail)
        with self.assertRaisesRegex(KeyError, "mine"):
            work()
        self.assertEqual(names_in(work.profile.saved[0])["helper"], 1)

    def test_recursion_is_one_profile(self):
        def fib(n):
            return n if n < 2 else again(n - 1) + again(n - 2)

        again = self.decorate(fib, interval=0)
        self.assertEqual(again(10), 55)
        self.assertEqual(again.profile.calls, 177)
        self.assertEqual([names_in(pair)["fib"] for pair in again.profile.saved], [177])

    def test_recursion_to_the_limit(self):
        def deeper():
            return again() + 1

        again = self.decorate(deeper)
        with self.assertRaises(RecursionError):
            again()
        self.assertEqual(self.decorate(helper, name="after")(4), 6)

    def test_one_inside_the_other(self):
        inner = self.decorate(helper, name="inner", interval=0)
        outer = self.decorate(lambda: inner(9), name="outer", interval=0)
        self.assertEqual((outer(), inner(9)), (36, 36))
        self.assertEqual(names_in(outer.profile.saved[0])["helper"], 1)
        self.assertEqual((inner.profile.calls, inner.profile.profiled), (2, 1))

    def test_a_profile_function_of_the_program_itself(self):
        work = self.decorate(helper, interval=0)
        events = []
        sys.setprofile(lambda *event: events.append(event[1]))
        try:
            results = [work(5) for _ in range(3)]
        finally:
            sys.setprofile(None)
        self.assertEqual(results, [10, 10, 10])
        self.assertTrue(events)
        self.assertEqual(work(5), 10)

    def test_it_turns_off_within_another_profile(self):
        work = self.decorate(helper, interval=0)
        with tare.functions() as outer:
            self.assertEqual(work(5), 10)
        self.assertEqual(work.profile.profiled, 0)
        self.assertEqual({f.name: f.calls for f in outer.functions()}["helper"], 1)
        work(5)
        self.assertEqual(work.profile.profiled, 1)


class Threads(InAFolder):
    def test_calls_are_counted_and_right_in_many_threads(self):
        work = self.decorate(helper, interval=0, every=7)
        wrong = []

        def many():
            for n in range(100):
                if work(n) != n * (n - 1) // 2:
                    wrong.append(n)

        threads = [threading.Thread(target=many) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((wrong, work.profile.calls), ([], 1600))
        self.assertGreater(work.profile.profiled, 0)
        for pair in work.profile.saved:
            self.assertIn("helper", names_in(pair))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork_within_a_call(self):
        def forks():
            child = os.fork()
            if child == 0:
                return None
            return os.waitpid(child, 0)[1]

        work = self.decorate(forks)
        status = work()
        if status is None:
            alone = self.decorate(helper, name="child", interval=0)
            os._exit(0 if alone(4) == 6 and not work.profile.saved and alone.profile.saved else 1)
        self.assertEqual(status, 0)
        self.assertEqual(len(work.profile.saved), 1)

    def test_workers_of_multiprocessing_save_what_they_gathered(self):
        for method in multiprocessing.get_all_start_methods():
            with self.subTest(method=method):
                process = multiprocessing.get_context(method).Process(target=worker, args=(self.folder, method))
                process.start()
                process.join(60)
                self.assertEqual(process.exitcode, 0)
                (path,) = self.files("in_%s_*.prof" % method)
                self.assertEqual(names_in((path,))["helper"], 6)


def worker(folder, name):
    work = tare.profile_function("in_" + name, folder=folder, at_exit=True)(helper)
    for _ in range(6):
        work(3)


class Async(InAFolder):
    def test_steps_are_profiled_and_waiting_is_not(self):
        async def answer(n):
            helper(n)
            await asyncio.sleep(0.2)
            return helper(n)

        async def main():
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, not_mine)
            return await work(5)

        def not_mine():
            pass

        work = self.decorate(answer, slower_than=0.1, sure=True)
        self.assertTrue(inspect.iscoroutinefunction(work))
        self.assertEqual(asyncio.run(main()), 10)
        seen = names_in(work.profile.saved[0])
        self.assertEqual(seen["helper"], 2)
        self.assertNotIn("not_mine", seen)
        stats = pstats.Stats(work.profile.saved[0][0])
        self.assertLess(stats.total_tt, 0.15)

    def test_many_at_once(self):
        async def answer(n):
            await asyncio.sleep(0.001)
            return helper(n)

        async def main():
            return await asyncio.gather(*(work(n) for n in range(50)))

        work = self.decorate(answer, interval=0)
        self.assertEqual(asyncio.run(main()), [helper(n) for n in range(50)])
        self.assertEqual(work.profile.calls, 50)

    def test_exceptions_and_cancelling(self):
        async def fail():
            await asyncio.sleep(0)
            raise KeyError("mine")

        async def wait():
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(True)

        async def main():
            with self.assertRaisesRegex(KeyError, "mine"):
                await self.decorate(fail, name="fail")()
            task = asyncio.ensure_future(waiting())
            await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        ended = []
        waiting = self.decorate(wait, name="wait")
        asyncio.run(main())
        self.assertEqual((ended, waiting.profile.profiled), ([True], 1))

    def test_generators(self):
        def count(n):
            got = []
            try:
                for i in range(n):
                    got.append((yield helper(i)))
            except KeyError:
                yield "caught"
            return got

        work = self.decorate(count, interval=0)
        self.assertTrue(inspect.isgeneratorfunction(work))
        self.assertEqual(list(work(4)), [0, 0, 1, 3])
        self.assertEqual(names_in(work.profile.saved[0])["helper"], 4)
        running = work(3)
        self.assertEqual((next(running), running.send("x"), running.throw(KeyError())), (0, 0, "caught"))
        with self.assertRaises(StopIteration) as end:
            next(running)
        self.assertEqual(end.exception.value, ["x"])
        abandoned = work(3)
        next(abandoned)
        abandoned.close()
        self.assertEqual(work.profile.profiled, 3)

    def test_async_generators_are_refused(self):
        async def stream():
            yield 1

        with self.assertRaisesRegex(TypeError, "async generator"):
            self.decorate(stream)


class Leaks(InAFolder):
    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays")
    def test_many_calls_keep_memory_flat(self):
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        work = self.decorate(helper, slower_than=3600, sure=True)
        for _ in range(2000):
            work(3)
        before = resident()
        for _ in range(10000):
            work(3)
        self.assertLess(resident() - before, 2 << 20)


if __name__ == "__main__":
    unittest.main()
