# SPDX-License-Identifier: MIT
"""tare.bench on every CPython: cases, inputs, what the document says, exceptions, interrupts, threads, coroutines, references. Needs Python
alone. Times are compared as ratios with wide margins only."""

import asyncio
import functools
import gc
import itertools
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback
import unittest
import weakref

import tare
from tare import _inputs
from tare._command import mark_function
from tare._answers import spelled_out

QUICK = {"budget": "20ms", "warmup": 3}


def words(texts):
    return sum(len(t.split()) for t in texts)


class Cases(unittest.TestCase):
    def test_a_sweep_has_a_case_for_each_pair_and_feeds_it_right(self):
        seen = set()

        def encode(texts):
            seen.add((len(texts), len(texts[0].split())))

        run = tare.bench(encode, ["a b c", "d"], batch_sizes=[1, 3], lengths=[2, 7], unit="texts", **QUICK)
        self.assertEqual(seen, {(1, 2), (3, 2), (1, 7), (3, 7)})
        names = [c.name for c in run.cases]
        self.assertEqual(names, ["batch=1,length=2", "batch=3,length=2", "batch=1,length=7", "batch=3,length=7"])
        case = run.case(batch=3, length=7)
        self.assertEqual(case.params, {"batch": 3, "length": 7})
        self.assertEqual((case.unit, case["units_per_run"]), ("texts", 3))
        self.assertEqual(case["throughput"]["unit"], "texts/s")
        self.assertIn(run.recommendation["case"], names)
        self.assertEqual(run.best.name, run.recommendation["case"])

    def test_one_call_as_it_is(self):
        calls = []
        run = tare.bench(lambda *args, **more: calls.append((args, more)), 1, "x", kwargs={"k": 2}, name="it", **QUICK)
        self.assertEqual(set(map(repr, calls)), {repr(((1, "x"), {"k": 2}))})
        self.assertEqual([c.name for c in run.cases], ["default"])
        self.assertEqual((run.subject, run.cases[0].unit, run.recommendation), ("it", "calls", None))
        self.assertIsNone(run.to_dict()["cases"][0]["accuracy"])

    def test_known_work_takes_its_time(self):
        took = []

        def nap():
            begun = time.perf_counter_ns()
            time.sleep(0.005)
            took.append((time.perf_counter_ns() - begun) / 1e6)

        case = tare.bench(nap, **QUICK).cases[0]
        tenths = statistics.quantiles(took, n=10)  # as it saw itself: a busy machine lets it sleep for longer
        self.assertGreater(case.p50_ms, 4.9)
        self.assertGreater(case.p50_ms, 0.9 * tenths[0])
        self.assertLess(case.p50_ms, 1.1 * tenths[-1] + 1)
        share = case.throughput * case.mean_ms / 1e3  # of the time the calls took; the rest is between them, where others may run
        self.assertTrue(0.3 < share < 1.1, share)

    def test_short_calls_are_timed_together_and_told(self):
        run = tare.bench(len, (), **QUICK)
        self.assertGreater(run.to_dict()["cases"][0]["calls_per_sample"], 1)
        self.assertLess(run.cases[0].p50_ms, 0.001)
        slow = tare.bench(time.sleep, 0.001, **QUICK)
        self.assertEqual(slow.to_dict()["cases"][0]["calls_per_sample"], 1)

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays, and a block has zones around it")
    def test_growth_is_of_one_call_though_many_are_timed_together(self):
        """Each 16th call keeps 300 bytes, with its object 336 and a place in a list."""
        kept, calls = [], itertools.count(1)

        def keeps():
            if next(calls) % 16 == 0:
                kept.append(bytes(300))

        case = tare.bench(keeps, budget=1, precision=1e-6).to_dict()["cases"][0]
        growth, runs = case["memory"]["growth"], case["samples"] * case["calls_per_sample"]
        self.assertGreater(case["calls_per_sample"], 8)
        self.assertTrue(15 < growth["value"] < 35, case["memory"])
        self.assertLess(growth["value"] * runs, 1.5 * case["memory"]["delta"])

    def test_units_of_a_whole_list_are_counted_when_named(self):
        self.assertEqual(tare.bench(words, ["a"] * 5, unit="texts", **QUICK).cases[0]["units_per_run"], 5)
        self.assertEqual(tare.bench(words, ["a"] * 5, **QUICK).cases[0]["units_per_run"], 1)

    def test_make_input_makes_all_arguments(self):
        asked = []

        def make_input(batch, length):
            asked.append((batch, length))
            return [0] * batch, length

        run = tare.bench(lambda items, n: None, batch_sizes=[4], lengths=[9], make_input=make_input, **QUICK)
        self.assertEqual(set(asked), {(4, 9)})
        self.assertEqual(run.cases[0]["units_per_run"], 4)

    def test_setup_is_called_before_each_run_and_is_not_timed(self):
        seen = []

        def setup(items):
            time.sleep(0.002)
            return (sorted(items, reverse=True),)

        run = tare.bench(lambda items: seen.append(items[0]), [1, 2, 3], setup=setup, max_runs=20, **QUICK)
        self.assertEqual(set(seen), {3})
        self.assertLess(run.cases[0].p50_ms, 1)

    def test_methods_partials_classes_and_keyword_order(self):
        class Model:
            def encode(self, texts, scale=1):
                self.seen = (len(texts), scale)

        model = Model()
        run = tare.bench(model.encode, ["a"], batch_sizes=[2], kwargs={"scale": 3}, **QUICK)
        self.assertEqual(model.seen, (2, 3))
        self.assertTrue(run.subject.endswith("Model.encode"), run.subject)
        self.assertTrue(run.to_dict()["subject"]["path"].endswith("matrix_bench.py"))
        tare.bench(functools.partial(model.encode, scale=5), ["a", "b"], **QUICK)
        self.assertEqual(model.seen, (2, 5))
        tare.bench(Model, **QUICK)

    def test_a_number_of_runs_that_is_given_is_kept(self):
        slow = functools.partial(time.sleep, 0.03)
        self.assertEqual(tare.bench(slow, min_runs=30, budget=0.2, warmup=1).cases[0].samples, 30)
        self.assertLess(tare.bench(slow, budget=0.2, warmup=1).cases[0].samples, 30)

    def test_targets_are_judged(self):
        for _ in range(5):  # on a busy machine the runs of a moment may be worth too few to bound a median
            run = tare.bench(time.sleep, 0.001, targets=["latency.p50<=10s", "latency.p50<=1us"], min_runs=100, **QUICK)
            short = tare.bench(len, (), targets="latency.p50<=10s", min_runs=100, **QUICK)
            if "inconclusive" not in {t["verdict"] for t in [*run.targets, *short.targets]}:
                break
        self.assertEqual({t["verdict"] for t in run.targets}, {"pass", "fail"})
        self.assertFalse(run.passed)
        self.assertTrue(short.passed)


class Coroutines(unittest.TestCase):
    def test_an_async_function_is_awaited(self):
        async def nap(s):
            await asyncio.sleep(s)

        run = tare.bench(nap, 0.003, **QUICK)
        self.assertGreater(run.cases[0].p50_ms, 2.9)

    def test_inside_a_running_loop(self):
        async def main():
            async def nap():
                await asyncio.sleep(0.001)

            return tare.bench(nap, **QUICK)

        self.assertGreater(asyncio.run(main()).cases[0].p50_ms, 0.9)

    def test_a_coroutine_that_nobody_awaits_is_refused(self):
        async def nap():
            pass

        made = []
        with self.assertRaisesRegex(TypeError, "async function itself"):
            tare.bench(lambda: made.append(nap()) or made[-1], **QUICK)
        for coroutine in made:
            coroutine.close()


class Faults(unittest.TestCase):
    def test_a_case_that_fails_is_a_row_and_the_others_are_kept(self):
        class Held:
            """What a batch that does not fit into memory would hold."""

        alive = []

        def third(items):
            held = Held()
            alive.append(weakref.ref(held))
            if len(items) == 3:
                raise MemoryError("no room\n for 3")

        for batches in ([1, 2, 3, 4], [3, 1]):  # the first one is also run before all
            run = tare.bench(third, [0], batch_sizes=batches, **QUICK)
            self.assertEqual([case["params"] for case in run.cases], [{"batch": batch} for batch in batches])
            self.assertFalse(run.passed)
            for case in run.cases:
                failed = case.params["batch"] == 3
                self.assertEqual(case.failure, "run 1: MemoryError: no room for 3" if failed else None)
                self.assertEqual(case.p50_ms is None, failed)
            self.assertEqual(run.case(batch=3).reasons["latency_ns"], "the case failed")
            self.assertEqual([f["case"] for f in run.findings if f["id"] == "runs.failed"], ["batch=3"])
            self.assertIn("batch=3: the case failed", str(run))
            self.assertFalse([one for one in alive if one()])

    def test_what_is_no_exception_ends_all_cases(self):
        calls = []

        def third(items):
            calls.append(len(items))
            if len(items) == 3:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            tare.bench(third, [0], batch_sizes=[1, 2, 3, 4], **QUICK)
        self.assertEqual((calls.count(3), calls.count(4)), (1, 0))

    def test_a_run_that_raises_is_counted(self):
        calls = []

        def flaky():
            calls.append(None)
            if len(calls) % 10 == 7:
                raise ValueError("broken")
            time.sleep(0.0001)

        for _ in range(5):  # on a busy machine the runs of a moment may be worth too few to bound a median
            calls.clear()
            run = tare.bench(flaky, warmup=20, min_runs=90, max_runs=90)
            case, document = run.cases[0], run.to_dict()["cases"][0]
            self.assertEqual((case.samples, case.failure), (90, "run 7: ValueError: broken"))
            self.assertAlmostEqual(document["failed_runs"], 90 / 9, delta=2)
            p50 = document["latency_ns"]["p50"]
            if p50["hi"] is not None and p50["hi"] < 2 * p50["value"]:
                return
        self.fail("failed runs make the median unsure: %s" % p50)

    def test_where_all_fail_the_exception_comes_out_with_its_traceback_and_the_case(self):
        def third(items):
            raise LookupError(f"in case {len(items)}")

        try:
            tare.bench(third, [0], batch_sizes=[3, 4], **QUICK)
            self.fail("nothing was raised")
        except LookupError as error:
            shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.assertIn("case batch=3: run 1: LookupError: in case 3", shown)
        self.assertIn("in third", shown)
        self.assertIn("LookupError: in case 3", shown)

    def test_exceptions_in_make_input_setup_and_progress(self):
        def fail(*args):
            raise ZeroDivisionError

        for more in ({"make_input": fail}, {"setup": fail}, {"progress": fail}):
            with self.assertRaises(ZeroDivisionError):
                tare.bench(len, (), **more, **QUICK)
        with self.assertRaisesRegex(TypeError, "setup must return"):
            tare.bench(len, (), setup=lambda items: 3, **QUICK)

    def test_keyboard_interrupt_ends_python_and_c_callables(self):
        def spin():
            pass

        for function, args in ((spin, ()), (sum, ([1, 2],))):
            before = signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    tare.bench(function, *args, budget=60, precision=0.0001)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def test_sys_exit_is_the_programs_own(self):
        with self.assertRaises(SystemExit):
            tare.bench(sys.exit, 3, **QUICK)

    def test_bad_input_is_refused_before_anything_runs(self):
        def never(*args):
            self.fail("it was called")

        for error, args, more in (
            (TypeError, (), {"batch_sizes": [2]}),
            (TypeError, (3,), {"batch_sizes": [2]}),
            (TypeError, ([3],), {"lengths": [2]}),
            (ValueError, ([],), {"batch_sizes": [2]}),
            (ValueError, ([""],), {"lengths": [2]}),
            (ValueError, (["a"],), {"batch_sizes": []}),
            (ValueError, (["a"],), {"batch_sizes": [0]}),
            (ValueError, (["a"],), {"batch_sizes": [2, 2]}),
            (ValueError, (["a"],), {"lengths": [1.5]}),
            (ValueError, (), {"budget": "soon"}),
            (ValueError, (), {"budget": -1}),
            (ValueError, (), {"warmup": "long"}),
            (ValueError, (), {"objective": "beauty"}),
            (ValueError, (), {"targets": ["latency<=1mz"]}),
            (ValueError, (), {"targets": ["throughput>=5pairs/s"]}),
            (ValueError, (), {"precision": 0}),
        ):
            with self.assertRaises(error, msg=more):
                tare.bench(never, *args, **more)
        with self.assertRaisesRegex(TypeError, "weighs a callable, not int"):
            tare.bench(3)

    def test_other_threads_go_on(self):
        turns = [0]
        stop = threading.Event()

        def count():
            while not stop.wait(0.001):
                turns[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        try:
            for _ in range(8):  # on a busy machine a second may pass without a turn; two turns fall between benches
                tare.bench(sum, [1, 2, 3], budget=1, precision=0.0001)  # never in Python code, never ends its turn by itself
                if turns[0] > 20:
                    break
            self.assertGreater(turns[0], 20)
        finally:
            stop.set()
            thread.join()

    def test_from_another_thread_and_inside_itself(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(tare.bench(len, (), **QUICK)))
        thread.start()
        thread.join()
        self.assertEqual(len(found), 1)
        inner = []
        tare.bench(lambda: inner.append(tare.bench(len, (), budget="2ms", warmup=1, max_runs=5)), max_runs=2, min_runs=1, **QUICK)
        self.assertTrue(inner)


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_saved_loaded_shown(self):
        run = tare.bench(words, ["a b"], batch_sizes=[1, 2], unit="texts", **QUICK)
        text = str(run)
        self.assertIn("texts/s", text)
        first, second = run.save(self.folder, history=False), run.save(self.folder, history=False)
        self.assertNotEqual(first, second)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(map(os.path.basename, (first, second))))
        again = tare.load(first)
        self.assertEqual(again.to_dict(), run.to_dict())
        self.assertEqual(str(again), text)  # by the carried command
        self.assertIn("batch=2", run._repr_html_())
        self.assertIn(run.id, repr(run))

    def test_names_cannot_leave_the_table_of_a_notebook(self):
        run = tare.bench(len, (), name="<script>alert(1)</script>", **QUICK)
        self.assertNotIn("<script>", run._repr_html_())

    def test_what_is_no_run_is_refused_by_name(self):
        for content in ("", "3", "{}", '{"schema": 3}', '{"schema": "tare.comparison/1"}'):
            path = os.path.join(self.folder, "x.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            with self.assertRaisesRegex(ValueError, "x.json: not a run document"):
                tare.load(path)
        with self.assertRaises(OSError):
            tare.load(os.path.join(self.folder, "none.json"))
        run = tare.bench(len, (), **QUICK)
        with self.assertRaises(OSError):
            run.save(os.path.join(path, "under-a-file"))
        with self.assertRaisesRegex(KeyError, "no case batch=9: this run has default"):
            run.case(batch=9)

    def test_samples_are_all_there_without_zstd(self):
        raw = tare.bench(time.sleep, 0.001, max_runs=12, min_runs=12, budget=10).to_dict()["cases"][0]["samples_raw"]
        self.assertEqual((raw["codec"], raw["count"]), ("delta-zigzag-varint+base64", 12))

    def test_a_page_gets_single_times_as_numbers(self):
        run = tare.bench(bool, 1, budget=0.05, max_runs=200)
        item = {"kind": "run", "document": run.to_dict()}
        case, given = spelled_out(item)["document"]["cases"][0], item["document"]["cases"][0]
        self.assertEqual((len(case["samples_ns"]), case["samples_kept"]), (given["samples_raw"]["count"], "all"))
        self.assertEqual(min(case["samples_ns"]), round(given["latency_ns"]["min"]))
        self.assertEqual(max(case["samples_ns"]), round(given["latency_ns"]["max"]))
        self.assertNotIn("samples_raw", case)
        other = {"kind": "run", "document": {"cases": [{"samples_raw": {"codec": "new", "count": 9, "kept": "all"}}, {}]}}
        self.assertEqual(spelled_out(other), other)


class Inputs(unittest.TestCase):
    def test_batches_and_lengths(self):
        self.assertEqual(_inputs.fit(["a b", "c"], 3, 3), ["a b a", "c c c", "a b a"])
        self.assertEqual(_inputs.fit("x y z", 0, 2), "x y")
        self.assertEqual(_inputs.fit([[1, 2, 3]], 1, 5), [[1, 2, 3, 1, 2]])
        self.assertEqual(_inputs.fit([("a b", "c")], 2, 2), [("a b", "c c"), ("a b", "c c")])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:

            def file(name, content):
                path = os.path.join(folder, name)
                with open(path, "wb") as to:
                    to.write(content)
                return path

            self.assertEqual(_inputs.read(file("a.txt", b"one\n\n two\n")), ["one", " two"])
            self.assertEqual(_inputs.read(file("a.json", b'["x", ["y"]]')), ["x", ["y"]])
            for name, content in (("b.txt", b""), ("b.json", b"{}"), ("c.json", b"["), ("d.json", b"[]"), ("e.txt", b"\xff\xfe\n")):
                with self.assertRaisesRegex(ValueError, name):
                    _inputs.read(file(name, content))

    def test_which_word_names_a_function(self):
        for given, marked in (
            (["embed.py:encode", "--batch", "8"], "py:embed.py:encode"),
            (["--batch", "8", "my/embed.py:Model.encode"], "py:my/embed.py:Model.encode"),
            (["--unit", "texts", "json:dumps"], "py:json:dumps"),
        ):
            self.assertIn(marked, mark_function(given))
        for given in (["model.onnx"], ["--target", "latency:100ms", "m.onnx"], ["--", "./a.py:b"], ["py:a.py:b"]):
            self.assertEqual(mark_function(given), given)


class Leaks(unittest.TestCase):
    def test_arguments_and_functions_are_let_go(self):
        class Item:
            pass

        class Model:
            def __call__(self, items):
                raise ValueError(items)

        item, model = Item(), Model()
        before = sys.getrefcount(item), sys.getrefcount(model)
        for _ in range(20):
            tare.bench(id, item, budget="1ms", warmup=1, max_runs=3, min_runs=1)
            with self.assertRaises(ValueError):
                tare.bench(model, [item], batch_sizes=[1], budget="1ms")
        gc.collect()
        self.assertEqual((sys.getrefcount(item), sys.getrefcount(model)), before)

    @unittest.skipUnless(hasattr(sys, "gettotalrefcount"), "needs a debug build of Python")
    def test_no_references_are_lost(self):
        def once():
            tare.bench(len, (), budget="1ms", warmup=1, max_runs=3, min_runs=1)

        for _ in range(5):
            once()
        gc.collect()
        before = sys.gettotalrefcount()
        for _ in range(50):
            once()
        gc.collect()
        self.assertLess(sys.gettotalrefcount() - before, 50)


if __name__ == "__main__":
    unittest.main()
