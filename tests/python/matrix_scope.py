# SPDX-License-Identifier: MIT
"""Scopes on every CPython: names, nesting, decorators of every kind of function, tasks, generators, threads, fork, spawn. Needs Python alone;
what the trace holds is read back through the carried command."""

import asyncio
import contextlib
import contextvars
import gc
import inspect
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import tare
from tare import _command


def rows(path):
    """{path of names: count} of a trace."""
    report = json.loads(_command.call("report", "--json", path))
    found = {}

    def walk(nodes, above):
        for node in nodes:
            here = (*above, node["name"])
            found[here] = found.get(here, 0) + node["count"]
            walk(node.get("children", []), here)

    walk(report["tree"], ())
    return found, report


class Recorded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = os.path.join(folder.name, "x.tare")
        tare.start(self.trace)
        self.addCleanup(tare.stop)

    def counts(self):
        tare.stop()
        return rows(self.trace)[0]


class Blocks(Recorded):
    def test_nest(self):
        for _ in range(3):
            with tare.scope("outer"):
                with tare.scope("inner"):
                    pass
                with tare.scope("inner"):
                    pass
        self.assertEqual(self.counts(), {("outer",): 3, ("outer", "inner"): 6})

    def test_one_name_is_one_object(self):
        self.assertIs(tare.scope("a"), tare.scope("a"))
        self.assertEqual(repr(tare.scope("a")), "tare.scope('a')")
        self.assertEqual(tare.scope("a").name, "a")

    def test_recursion(self):
        def fall(n):
            with tare.scope("fall"):
                return fall(n - 1) if n else 0

        fall(4)
        self.assertEqual(sum(self.counts().values()), 5)

    def test_exceptions_pass(self):
        with self.assertRaises(KeyError):
            with tare.scope("broken"):
                raise KeyError("x")
        self.assertEqual(self.counts(), {("broken",): 1})

    def test_ends_in_any_order(self):
        with contextlib.ExitStack() as stack:
            first, second = tare.scope("first"), tare.scope("second")
            stack.enter_context(first)
            stack.enter_context(second)
            first.__exit__(None, None, None)
            with tare.scope("third"):
                pass
        counts = self.counts()
        self.assertEqual(sum(n for path, n in counts.items() if path[-1] == "second"), 1)
        self.assertEqual(sum(n for path, n in counts.items() if path[-1] == "third"), 1)

    def test_ended_too_often(self):
        scope = tare.scope("once")
        with scope:
            pass
        scope.__exit__(None, None, None)
        scope.__exit__(None, None, None)
        self.assertEqual(self.counts(), {("once",): 1})

    def test_what_is_no_name(self):
        for bad in (3, None, b"bytes", object()):
            with self.assertRaises(TypeError):
                tare.scope(bad)
        with self.assertRaises(UnicodeEncodeError):
            tare.scope("\ud800")
        with self.assertRaises(TypeError):
            tare.scope(int)

    def test_counters_and_marks(self):
        with tare.scope("outer"):
            tare.count("tokens", 5)
            tare.count("tokens", -2)
            tare.mark("epoch", "1")
        tare.stop()
        report = rows(self.trace)[1]
        self.assertIn("tokens", json.dumps(report))
        self.assertIn("epoch", json.dumps(report))


class Functions(Recorded):
    def test_plain(self):
        @tare.scope
        def add(a, b=1, *rest, **named):
            "adds"
            return a + b

        self.assertEqual((add(1), add(1, b=2), add(1, 2, 3, k=4)), (2, 3, 3))
        self.assertEqual((add.__name__, add.__doc__, str(inspect.signature(add))), ("add", "adds", "(a, b=1, *rest, **named)"))
        self.assertEqual(sum(self.counts().values()), 3)

    def test_methods(self):
        class Model:
            @tare.scope("forward")
            def forward(self, x):
                return self, x

            @tare.scope("make")
            @classmethod
            def make(cls):
                return cls

            @tare.scope("fixed")
            @staticmethod
            def fixed(x):
                return x

        model = Model()
        self.assertEqual(model.forward(2), (model, 2))
        self.assertEqual(Model.forward(model, 3), (model, 3))
        self.assertIs(Model.make(), Model)
        self.assertEqual(model.fixed(4), 4)
        self.assertEqual(self.counts(), {("forward",): 2, ("make",): 1, ("fixed",): 1})

    def test_raising(self):
        @tare.scope
        def broken():
            raise ValueError("x")

        with self.assertRaises(ValueError):
            broken()
        self.assertEqual(sum(self.counts().values()), 1)

    def test_generator(self):
        @tare.scope("items")
        def items(n):
            with tare.scope("inside"):
                got = []
                for i in range(n):
                    got.append((yield i))
            return got

        self.assertTrue(inspect.isgeneratorfunction(items))

        def read():
            source = items(2)
            with tare.scope("reader"):
                first = next(source)
            second = source.send(("a", 1))
            try:
                source.send("b")
            except StopIteration as end:
                return first, second, end.value

        self.assertEqual(read(), (0, 1, [("a", 1), "b"]))
        counts = self.counts()
        self.assertEqual(sum(n for path, n in counts.items() if path[-1] == "items"), 1)
        self.assertEqual(sum(n for path, n in counts.items() if path[-1] == "inside"), 1)
        self.assertEqual(counts[("reader",)], 1)

    def test_generator_thrown_into_and_closed(self):
        @tare.scope("items")
        def items():
            while True:
                try:
                    yield 1
                except KeyError:
                    yield 2

        source = items()
        self.assertEqual((next(source), source.throw(KeyError()), next(source)), (1, 2, 1))
        source.close()
        with self.assertRaises(StopIteration):
            next(source)
        leftover = items()
        next(leftover)
        del leftover
        gc.collect()
        self.assertEqual(self.counts(), {("items",): 2})

    def test_coroutine(self):
        @tare.scope
        async def work(x):
            await asyncio.sleep(0)
            return x + 1

        self.assertTrue(inspect.iscoroutinefunction(work))
        self.assertEqual(asyncio.run(work(1)), 2)
        self.assertEqual(sum(self.counts().values()), 1)

    def test_async_generator(self):
        @tare.scope("stream")
        async def stream(n):
            for i in range(n):
                await asyncio.sleep(0)
                try:
                    yield i
                except KeyError:
                    yield "caught"

        async def read():
            got = [x async for x in stream(3)]
            other = stream(3)
            got.append(await other.__anext__())
            got.append(await other.athrow(KeyError()))
            await other.aclose()
            return got

        self.assertTrue(inspect.isasyncgenfunction(stream))
        self.assertEqual(asyncio.run(read()), [0, 1, 2, 0, "caught"])


class Tasks(Recorded):
    def test_overlapping_requests_are_equal_bars_and_nothing_else(self):
        """That a task went to sleep is noticed late: of the eight one seemed to run all the time, seven hardly at all."""

        async def request():
            with tare.scope("request"):
                with tare.scope("parse"):
                    pass
                await asyncio.sleep(0.05)

        async def main():
            await asyncio.gather(*(request() for _ in range(8)))

        asyncio.run(main())
        self.counts()
        out = self.trace + ".json"
        _command.call("export", "-f", "chrome", "-o", out, self.trace)
        with open(out) as f:
            events = json.load(f)["traceEvents"]
        begun, ended = ({e["id2"]["local"]: e["ts"] for e in events if e["ph"] == ph} for ph in "be")
        self.assertEqual((len(begun), begun.keys()), (8, ended.keys()))
        self.assertGreaterEqual(min(ended[k] - begun[k] for k in begun), 49_000)  # each has all of its sleep
        on_thread = [e["name"] for e in events if e["ph"] == "B"]
        self.assertEqual(on_thread, ["parse"] * 8)

    def test_tasks_do_not_mix(self):
        async def work(n):
            with tare.scope("task%d" % n):
                for _ in range(5):
                    await asyncio.sleep(0.001 * (n % 3))
                    with tare.scope("inner"):
                        await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*[work(n) for n in range(20)])

        with tare.scope("run"):
            asyncio.run(main())
        expected = {("run",): 1}
        for n in range(20):
            expected[("run", "task%d" % n)] = 1
            expected[("run", "task%d" % n, "inner")] = 5
        self.assertEqual(self.counts(), expected)

    def test_waiting_is_part_of_a_task(self):
        async def nap(name, seconds):
            with tare.scope(name):
                await asyncio.sleep(seconds)

        async def main():
            await asyncio.gather(nap("long", 0.06), nap("short", 0.02))

        asyncio.run(main())
        tare.stop()
        report = rows(self.trace)[1]
        total = {node["name"]: node["total_ns"] for node in report["tree"]}
        total = {name: value["value"] if isinstance(value, dict) else value for name, value in total.items()}
        self.assertGreaterEqual(total["long"], 0.06e9)
        self.assertGreaterEqual(total["short"], 0.02e9)

    def test_cancelled(self):
        async def forever():
            with tare.scope("forever"):
                await asyncio.sleep(1000)

        async def main():
            task = asyncio.ensure_future(forever())
            await asyncio.sleep(0)
            with tare.scope("other"):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

        asyncio.run(main())
        self.assertEqual(self.counts(), {("forever",): 1, ("other",): 1})


    @unittest.skipIf(sys.version_info < (3, 11), "create_task(context=) is new in 3.11")
    def test_tasks_that_share_a_context(self):
        async def work(n):
            with tare.scope("task%d" % n):
                await asyncio.sleep(0.002)
                with tare.scope("inner"):
                    await asyncio.sleep(0.001 * n)

        async def main():
            context, loop = contextvars.copy_context(), asyncio.get_running_loop()
            await asyncio.gather(*[loop.create_task(work(n), context=context) for n in range(3)])

        asyncio.run(main())
        expected = {("task%d" % n,): 1 for n in range(3)}
        self.assertEqual(self.counts(), {**expected, **{(*path, "inner"): 1 for path in expected}})

    @unittest.skipIf(sys.version_info < (3, 12), "eager tasks are new in 3.12")
    def test_eager_tasks_and_groups(self):
        async def work(n):
            with tare.scope("task%d" % n):
                await asyncio.sleep(0.001 * n)
                with tare.scope("inner"):
                    pass

        async def main():
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            with tare.scope("main"):
                async with asyncio.TaskGroup() as group:
                    for n in range(3):
                        group.create_task(work(n))

        asyncio.run(main())
        expected = {("task%d" % n,): 1 for n in range(3)}
        self.assertEqual(self.counts(), {("main",): 1, **expected, **{(*path, "inner"): 1 for path in expected}})

    def test_callbacks_and_executors_are_not_the_task(self):
        def block(name):
            with tare.scope(name):
                pass

        async def main():
            loop = asyncio.get_running_loop()
            called = loop.create_future()
            with tare.scope("main"):
                loop.call_soon(lambda: (block("callback"), called.set_result(1)))
                await called
                await loop.run_in_executor(None, block, "executor")
                contextvars.copy_context().run(block, "nested")

        asyncio.run(main())
        self.assertEqual(self.counts(), {("main",): 1, ("callback",): 1, ("executor",): 1, ("main", "nested"): 1})

    def test_an_abandoned_task_is_collected(self):
        ended = []

        async def forever():
            try:
                with tare.scope("forever"):
                    await asyncio.sleep(1000)
            finally:
                ended.append(True)

        loop = asyncio.new_event_loop()
        task = loop.create_task(forever())
        task._log_destroy_pending = False
        loop.run_until_complete(asyncio.sleep(0.001))
        loop.close()
        known = weakref.ref(task)
        del task, loop
        gc.collect()
        self.assertIsNone(known())
        self.assertEqual(ended, [True])
        with tare.scope("after"):
            pass
        self.assertEqual(self.counts()[("after",)], 1)


class Processes(Recorded):
    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays")
    def test_threads_that_end_with_a_scope_open_leave_nothing(self):
        def work():
            with tare.scope("thread"):
                tare.scope("left open").__enter__()

        def resident():
            for _ in range(400):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            with open("/proc/self/statm") as pages:
                return int(pages.read().split()[1])

        resident()
        before = resident()
        self.assertLess(resident() - before, 20)  # pages; 400 threads that leave 200 bytes each would be more

    def test_threads(self):
        def work():
            for _ in range(100):
                with tare.scope("thread"):
                    pass

        threads = [threading.Thread(target=work) for _ in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(self.counts(), {("thread",): 5000})

    def test_fork_goes_on_in_the_child(self):
        child = os.fork()
        if child == 0:
            with tare.scope("child"):
                pass
            tare.stop()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        with tare.scope("parent"):
            pass
        self.assertEqual(self.counts(), {("child",): 1, ("parent",): 1})


class Outside(unittest.TestCase):
    def test_without_a_session_nothing_happens(self):
        self.assertFalse(tare.recording())
        with tare.scope("off"):
            tare.count("n")
            tare.mark("m")
        tare.stop()

    def test_a_session_that_starts_and_stops_inside_a_scope(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.tare")
            with tare.scope("around"):
                tare.start(path)
                with tare.scope("inside"):
                    tare.stop()
            with tare.scope("after"):
                pass
            self.assertEqual(tare.recording(), False)

    def test_bad_sessions(self):
        with self.assertRaises(OSError):
            tare.start("/nonexistent/folder/x.tare")
        with self.assertRaises(ValueError):
            tare.start("x.tare", mode="sideways")
        with self.assertRaises(TypeError):
            tare.start(3)

    def test_started_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            tare.start(os.path.join(folder, "x.tare"))
            with self.assertRaises(RuntimeError):
                tare.start(os.path.join(folder, "y.tare"))
            tare.stop()

    def test_environment_starts_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.tare")
            code = "import tare\nfor _ in range(7):\n  with tare.scope('step'): pass"
            subprocess.run([sys.executable, "-c", code], env={**os.environ, "TARE_TRACE": path}, check=True)
            self.assertEqual(rows(path)[0], {("step",): 7})

    def test_spawned_and_forked_workers(self):
        for method in ("spawn", "fork"):
            pool = multiprocessing.get_context(method).Pool(2)
            self.assertEqual(pool.map(scoped_square, range(4)), [0, 1, 4, 9])
            pool.close()
            pool.join()

    def test_subinterpreters_are_refused(self):
        code = """
import tare
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        raise SystemExit(0)
other = interpreters.create()
said = "try:\\n import tare\\nexcept ImportError as e:\\n assert 'subinterpreter' in str(e), e\\nelse:\\n raise SystemError('imported')"
if hasattr(interpreters, "exec"):
    failed = interpreters.exec(other, said)
    assert failed is None, failed
else:
    interpreters.run_string(other, said)
"""
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_open_at_exit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.tare")
            code = "import tare,sys; tare.start(sys.argv[1]); s=tare.scope('open'); s.__enter__()"
            subprocess.run([sys.executable, "-c", code, path], check=True)
            self.assertTrue(os.path.exists(path))

    @unittest.skipUnless(hasattr(sys, "gettotalrefcount"), "a debug build counts references")
    def test_references(self):
        @tare.scope
        def f():
            pass

        def once():
            with tempfile.TemporaryDirectory() as folder:
                tare.start(os.path.join(folder, "x.tare"))
                for _ in range(50):
                    f()
                    with tare.scope("x"):
                        pass
                tare.stop()

        for _ in range(3):
            once()
        gc.collect()
        before = sys.gettotalrefcount()
        for _ in range(20):
            once()
        gc.collect()
        self.assertLess(sys.gettotalrefcount() - before, 100)


def scoped_square(x):
    with tare.scope("square"):
        return x * x


if __name__ == "__main__":
    unittest.main()
