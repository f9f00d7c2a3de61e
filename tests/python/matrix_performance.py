# SPDX-License-Identifier: MIT
"""PerformanceProfiler and its relatives on every CPython: blocks nested, raising, in threads, tasks and children; the sampling thread's life;
memory that stays flat; unknown values; verdicts. Needs Python alone."""

import asyncio
import contextlib
import dataclasses
import gc
import json
import math
import mmap
import multiprocessing
import os
import pathlib
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import warnings

import tare
from tare import _performance, _tare
from tare._regression import RegressionResult
from tare._unknown import Unknown, known, plain
from tare._answers import write_text


# AddressSanitizer keeps what is freed for a while.
keeps_freed = unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays")


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def wait_samples(n):
    """Until the sampling thread has read n times more: however busy the machine is."""
    wanted, deadline = _tare.sampler_cost()["samples"] + n, time.monotonic() + 30
    while _tare.sampler_cost()["samples"] < wanted and time.monotonic() < deadline:
        time.sleep(0.005)


def two_lines():
    spin(0.04)
    spin(0.004)


def block_in_child(queue):
    profiler = tare.PerformanceProfiler(memory_interval=0.01)
    with profiler.profile("child"):
        wait_samples(5)
    queue.put((profiler.get_metrics().memory.samples, _tare.sampler_cost()["running"]))


class Values(unittest.TestCase):
    def test_unknown_formats_compares_and_travels(self):
        x = Unknown("no sensor")
        self.assertEqual(f"{x:.1f}|{x:,}|{x:>10.2f}|{x}", "unknown|unknown|   unknown|unknown")
        self.assertFalse(x > 0.9 or x < 0.9 or x == 0 or x)
        made = (x + 1, 1 - x, x / 1024 / 1024, 2 * x, x // 3, x % 3, x**2, -x, abs(x), round(x), round(x, 2), sum([x, 1]), math.floor(x))
        self.assertEqual({(f"{y:.1f}", y.reason, math.isnan(y)) for y in made}, {("unknown", "no sensor", True)})
        self.assertRaises(ValueError, int, x)
        self.assertEqual(pickle.loads(pickle.dumps(x)).reason, "no sensor")
        self.assertEqual([known(x), known(None), known(math.nan), known(0)], [False, False, False, True])
        self.assertIsNone(plain(x))


class Blocks(unittest.TestCase):
    def test_nested_times_add_up(self):
        p = tare.PerformanceProfiler()
        with p.profile("whole"):
            for _ in range(3):
                with p.profile("part"):
                    time.sleep(0.02)
            time.sleep(0.03)
        whole, breakdown = p.get_metrics("whole").timing, p.get_timing_breakdown()
        self.assertEqual(set(breakdown), {"whole", "part"})
        self.assertAlmostEqual(sum(breakdown.values()) + whole.instrument_s, whole.wall_time_s, delta=0.01 * whole.wall_time_s)
        self.assertGreaterEqual(breakdown["whole"], 0.03)
        self.assertGreaterEqual(breakdown["part"], 0.06)
        self.assertEqual(p.get_metrics("part").timing.calls, 3)
        self.assertAlmostEqual(whole.breakdown["part"], breakdown["part"], places=6)
        self.assertGreaterEqual(p.get_timing_breakdown("total")["whole"], 0.09)

    def test_cpu_time_is_not_wall_time(self):
        p = tare.PerformanceProfiler()
        with p.profile("spin"):
            spin(0.05)
        with p.profile("sleep"):
            time.sleep(0.05)
        spun, slept = p.get_metrics("spin").timing, p.get_metrics("sleep").timing
        self.assertGreaterEqual(spun.thread_cpu_time_s, 0.05)
        self.assertGreaterEqual(spun.wall_time_s, 0.9 * spun.thread_cpu_time_s)
        self.assertGreaterEqual(slept.wall_time_s, 0.05)
        self.assertLess(slept.thread_cpu_time_s, 0.5 * slept.wall_time_s)

    @keeps_freed
    def test_a_tree_holds_what_its_process_held(self):
        """A peak between two samples is in the kernel's mark of the process, which is one of the tree."""
        p = tare.PerformanceProfiler(memory_interval=0.3)
        with p.profile("peak"):
            wait_samples(2)
            block = bytearray(200 << 20)
            block[::4096] = b"x" * len(block[::4096])
            del block
            wait_samples(2)
        m = p.get_metrics().memory
        self.assertGreaterEqual(m.peak_tree_ram_mb, m.peak_ram_mb)

    @keeps_freed
    def test_a_peak_that_is_gone_at_the_end_is_seen(self):
        p = tare.PerformanceProfiler(memory_interval=0.01, detailed_memory=True)
        with p.profile("peak"):
            block = bytearray(60 << 20)
            block[::4096] = b"x" * len(block[::4096])
            wait_samples(8)
            del block
        m = p.get_metrics().memory
        self.assertGreater(m.peak_ram_mb, m.start_ram_mb + 50)
        self.assertLess(m.end_ram_mb, m.peak_ram_mb - 50)
        self.assertGreater(m.samples, 3)
        self.assertGreater(max(mb for _, mb in m.course), m.start_ram_mb + 50)
        self.assertFalse(m.peak_pss_mb < 50, m)  # not one of before the block; unknown only where none was read within it
        with p.profile("short"):
            pass
        self.assertRegex(p.get_metrics().memory.peak_pss_mb.reason, "process.memory.pss: (not read within|no sample near) this block")

    @keeps_freed
    def test_growth_is_told_from_steadiness(self):
        p, kept = tare.PerformanceProfiler(memory_interval=0.005), []
        with p.profile("leaks"):
            for _ in range(40):
                kept.append(mmap.mmap(-1, 1 << 20))  # fresh: an allocator would first use up what tests before gave back
                kept[-1].write(b"x" * (1 << 20))
                wait_samples(2)
        leak = p.get_metrics().memory.leak
        self.assertEqual((leak.verdict, leak.growing), ("growing", True))
        self.assertGreater(leak.confidence, 0.95)
        self.assertGreater(leak.mb_per_s, 0)
        self.assertGreaterEqual(leak.mb_per_s_low, 0)  # on a busy machine many samples fall between two steps
        with p.profile("steady"):
            wait_samples(40)
        self.assertFalse(p.get_metrics().memory.leak.growing)
        with p.profile("short"):
            pass
        self.assertFalse(known(p.get_metrics().memory.leak.confidence))

    def test_exceptions_pass_and_are_named(self):
        p = tare.PerformanceProfiler()
        with self.assertRaises(ZeroDivisionError), p.profile("outer"), p.profile("inner"):
            1 / 0
        self.assertEqual([p.get_metrics(n).failed for n in ("inner", "outer")], ["ZeroDivisionError"] * 2)
        with p.profile("after"):
            pass
        self.assertEqual(p.get_metrics().name, "after")

    def test_a_block_is_entered_once(self):
        p = tare.PerformanceProfiler()
        block = p.profile("once")
        with block:
            pass
        with self.assertRaises(RuntimeError), block:
            pass

    def test_mistakes_are_named(self):
        p = tare.PerformanceProfiler()
        self.assertRaises(LookupError, p.get_metrics)
        with p.profile("there"):
            pass
        with self.assertRaisesRegex(KeyError, "there"):
            p.get_metrics("not there")
        self.assertRaises(ValueError, tare.PerformanceProfiler, memory_interval=0)
        with self.assertRaisesRegex(ValueError, "WORLD"):
            tare.PerformanceProfiler(track_carbon=True, carbon_grid="XX")
        self.assertRaises(RuntimeError, p.get_line_profile)

    def test_threads_have_their_own_last_block(self):
        p, seen = tare.PerformanceProfiler(), {}

        def work(i):
            with p.profile(f"outer {i}"):
                with p.profile("shared"):
                    time.sleep(0.001)
            seen[i] = p.get_metrics().name

        threads = [threading.Thread(target=work, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(seen, {i: f"outer {i}" for i in range(100)})
        self.assertEqual(p.get_metrics("shared").timing.calls, 100)
        self.assertEqual(len(p.get_times("shared")), 100)

    def test_a_block_never_lets_go_of_the_gil(self):
        """Else threads wait for it at the end of blocks and no longer where the program waits: the block inside looked 12 times shorter."""
        p, ran, interval = tare.PerformanceProfiler(), [], sys.getswitchinterval()
        begun = []

        def other():
            while not begun:
                time.sleep(0.001)
            ran.append(True)  # it wanted the GIL since the blocks began, and got it from a thread that gave it away

        class Taken:  # somebody reads results all the time
            def acquire(self, blocking=True):
                self.waited |= blocking
                return False

            waited = False
            def __enter__(self):
                self.acquire()

            def __exit__(self, *exception):
                pass

        thread = threading.Thread(target=other)
        free, p._lock = p._lock, Taken()
        try:
            sys.setswitchinterval(100)
            thread.start()
            begun.append(True)
            until, blocks = time.perf_counter() + 0.1, 0
            while time.perf_counter() < until or blocks < 200:
                with p.profile("outer"), p.profile("inner"):
                    blocks += 1
            self.assertEqual((ran, p._lock.waited), ([], False))
        finally:
            sys.setswitchinterval(interval)
            p._lock = free
            thread.join()
        self.assertEqual([p.get_metrics(name).timing.calls for name in ("outer", "inner")], [blocks, blocks])

    def test_waiting_is_never_the_instruments(self):
        p, whole = tare.PerformanceProfiler(track_system=False, track_gpu=False), []

        def work():
            for _ in range(20):
                with p.profile("request"), p.profile("inner"):
                    spin(0.0005)
            whole.append(p.get_metrics("request").timing)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        total, own = p.get_timing_breakdown("total"), p.get_timing_breakdown()
        self.assertGreater(own["inner"] + own["request"], 0.5 * total["request"])  # the rest is what measuring took: 0.08 before
        self.assertLess(statistics.median(t.instrument_s for t in whole), 0.02)  # one may lose the processor there

    def test_tasks_nest_in_their_own_parents(self):
        p, least, most = tare.PerformanceProfiler(), [], []  # (begin, end) of each task: a little within its block, a little around it

        async def work(i):
            around = time.perf_counter()
            async with p.profile(f"task {i}"):
                within = time.perf_counter()
                with p.profile("step"):
                    await asyncio.sleep(0.02)
                least.append((within, time.perf_counter()))
            most.append((around, time.perf_counter()))
            return p.get_metrics().name

        async def main():
            with p.profile("all"):
                spin(0.02)
                return await asyncio.gather(*(work(i) for i in range(8)))

        def together(spans):
            seconds, until = 0.0, 0.0
            for begin, end in sorted(spans):
                seconds, until = seconds + max(0, end - max(begin, until)), max(until, end)
            return seconds

        self.assertEqual(asyncio.run(main()), [f"task {i}" for i in range(8)])
        whole = p.get_metrics("all").timing
        inside = whole.wall_time_s - whole.self_time_s - whole.instrument_s  # eight that overlap are not eight times the time
        self.assertGreaterEqual(inside, together(least) - 1e-6)
        self.assertLessEqual(inside, together(most) + 1e-6)
        self.assertEqual(len(whole.breakdown), 8)
        self.assertEqual(set(p.get_metrics("task 3").timing.breakdown), {"step"})

    def test_names_are_bounded(self):
        p = tare.PerformanceProfiler(max_names=50)
        for i in range(200):
            with p.profile(f"request {i}"):
                pass
        self.assertEqual(len(p.get_timing_breakdown()), 50)
        self.assertEqual(p.get_metrics().name, "request 199")

    def test_metrics_print_as_a_summary(self):
        p = tare.PerformanceProfiler(track_gpu=False, track_system=False)
        with p.profile("plain"):
            pass
        with p.profile("told", samples=10):
            pass
        plain, told = str(p.get_metrics("plain")), str(p.get_metrics("told"))
        self.assertRegex(plain, r"^plain: wall [\d.]+ [mun]?s, CPU [\d.]+ [mun]?s\n  memory      peak [\d.,]+ MB")
        self.assertIn("machine     CPU unknown %", plain)
        self.assertNotIn("throughput", plain)
        self.assertIn("samples/s (told)", told)

    def test_samples_make_throughput(self):
        p = tare.PerformanceProfiler()
        with p.profile("told", samples=100):
            time.sleep(0.01)
        m = p.get_metrics()
        self.assertAlmostEqual(m.throughput * m.timing.wall_time_s, 100)
        with p.profile("later") as block:
            block.samples = 7
        self.assertEqual(p.get_metrics().throughput_source, "told")
        with p.profile("none"):
            pass
        self.assertFalse(known(p.get_metrics().throughput))

    def test_lines_are_shares_of_the_block(self):
        p = tare.PerformanceProfiler(enable_line_profiling=True)
        with p.profile("lines"):
            with p.profile("inside"):
                two_lines()
        first = two_lines.__code__.co_firstlineno
        found = {line.line_number - first: line for line in p.get_line_profile() if line.function == "two_lines"}
        self.assertGreater(found[1].time_percent, found[2].time_percent)
        self.assertTrue(0 < found[2].time_percent < found[1].time_percent <= 101)

    def test_a_block_that_cannot_begin_leaves_nothing_behind(self):
        p = tare.PerformanceProfiler(enable_line_profiling=True)
        with tare.lines(two_lines):
            with self.assertRaises(RuntimeError):
                p.profile("refused").__enter__()
        with p.profile("lines"):
            two_lines()
        self.assertIn("two_lines", [line.function for line in p.get_line_profile()])

    def test_documents_have_null_and_reasons(self):
        p = tare.PerformanceProfiler(track_gpu=False)
        with p.profile("x"):
            pass
        document = json.loads(json.dumps(p.get_metrics().to_dict(), allow_nan=False))
        self.assertIsNone(document["memory"]["peak_gpu_mb"])
        self.assertIn("track_gpu=True", document["unknown"]["memory.peak_gpu_mb"])


class Machine(unittest.TestCase):
    def test_what_is_now(self):
        p = tare.PerformanceProfiler(track_network=True)
        stats = p.get_current_system_stats()
        self.assertTrue(0 <= stats.cpu_percent <= 100)
        self.assertTrue(0 < stats.memory_percent < 100)
        before = p.get_current_memory()
        block = mmap.mmap(-1, 40 << 20)  # fresh: an allocator would first use up what tests before gave back
        block.write(b"x" * (40 << 20))
        self.assertGreater(p.get_current_memory(), before + 30)
        block.close()
        self.assertFalse(p.get_current_gpu_memory() > 1)

    def test_report_over_blocks(self):
        p = tare.PerformanceProfiler(system_interval=0.05)
        self.assertFalse(known(p.get_system_report().avg_cpu_percent))
        for name in "ab":
            with p.profile(name):
                spin(0.15)
        report = p.get_system_report()
        self.assertEqual(report.blocks, 2)
        self.assertTrue(0 < report.avg_cpu_percent <= 100)
        self.assertTrue(0 < report.peak_memory_percent < 100)

    def test_a_mean_is_no_more_than_the_most(self):
        full = types.SimpleNamespace(**dict.fromkeys(vars(_performance.SystemReport([])), 0.0))
        for name in ("cpu_percent", "disk_io_percent", "disk_io_wait_percent", "steal_percent", "load", "average_memory_percent",
                     "memory_percent", "temperature_c", "gpu_temperature_c"):
            setattr(full, name, 100.0)
        report = _performance.SystemReport([(0.94, full), (0.38, full)])  # 132.00000000000001 / 1.32 of plain sums
        self.assertEqual((report.avg_cpu_percent, report.peak_cpu_percent), (100.0, 100.0))

    def test_a_busy_loop_is_seen_by_the_kernel_too(self):
        p = tare.PerformanceProfiler(system_interval=0.05)
        with p.profile("spin"):
            spin(0.3)
        m = p.get_metrics()
        cpus = os.cpu_count()
        self.assertGreater(m.system.cpu_percent, 0.5 * 100 / cpus * m.timing.thread_cpu_time_s / m.timing.wall_time_s)

    def test_diagnosis_is_silent_about_the_unknown(self):
        p = tare.PerformanceProfiler(track_gpu=False, track_system=False)
        with p.profile("x"):
            pass
        self.assertEqual(tare.diagnose_performance_issues(p.get_metrics()), [])

    def test_a_machine_that_others_keep_busy_is_no_bottleneck_of_ours(self):
        p = tare.PerformanceProfiler(track_gpu=False, track_system=False)
        with p.profile("x"):
            pass
        m, busy = p.get_metrics(), dataclasses.replace(p.get_metrics().system, cpu_percent=99.0)
        for own, begins in ((2.0, "Others take the processors"), (150.0, "CPU bottleneck")):
            m = dataclasses.replace(m, system=busy, timing=dataclasses.replace(m.timing, cpu_percent=own))
            self.assertEqual([issue[: len(begins)] for issue in tare.diagnose_performance_issues(m)], [begins])


class Sampler(unittest.TestCase):
    def test_one_thread_for_all_and_it_parks(self):
        gc.collect()  # profilers of other tests that still watch
        profilers = [tare.PerformanceProfiler(memory_interval=0.01) for _ in range(5)]
        blocks = [p.profile("x").__enter__() for p in profilers]
        wait_samples(2)
        threads = [pathlib.Path(f"/proc/self/task/{t}/comm").read_text().strip() for t in os.listdir("/proc/self/task")]
        self.assertEqual(threads.count("tare-sampler"), 1)
        for block in reversed(blocks):
            block.__exit__(None, None, None)
        for p in profilers:
            p.get_metrics()
        deadline = time.monotonic() + 5
        while not _tare.sampler_cost()["parked"] and time.monotonic() < deadline:
            time.sleep(0.02)
        before = _tare.sampler_cost()["samples"]
        time.sleep(0.1)
        self.assertTrue(_tare.sampler_cost()["parked"])
        self.assertEqual(_tare.sampler_cost()["samples"], before)

    def test_stopped_it_starts_again(self):
        _tare.sampler_stop()
        _tare.sampler_stop()
        self.assertFalse(_tare.sampler_cost()["running"])
        p = tare.PerformanceProfiler(memory_interval=0.01)
        with p.profile("x"):
            wait_samples(4)
        self.assertGreater(p.get_metrics().memory.samples, 1)

    def test_a_fork_inside_a_block(self):
        p = tare.PerformanceProfiler(memory_interval=0.01)
        with p.profile("both"):
            wait_samples(5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of forking with threads: that is the test
                pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    with p.profile("in child"):
                        wait_samples(5)
                    code = 0 if p.get_metrics().memory.samples > 1 and _tare.sampler_cost()["running"] else 2
                finally:
                    os._exit(code)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertGreater(p.get_metrics().memory.samples, 3)

    def test_multiprocessing(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = context.Process(target=block_in_child, args=(queue,))
                child.start()
            samples, running = queue.get(timeout=60)
            child.join()
            self.assertTrue(samples > 1 and running, method)

    def test_watches_are_checked(self):
        self.assertRaises(ValueError, _tare.Watch, ["nothing"], 1.0, 1.0, 1.0)
        self.assertRaises(TypeError, _tare.Watch, 3, 1.0, 1.0, 1.0)
        watch = _tare.Watch(["self"], 0.01, 1.0, 1.0)
        watch.end()
        watch.end()
        self.assertIn("self.memory.rss", watch.take())
        self.assertRaises(ValueError, watch.take)
        for _ in range(100):
            _tare.Watch(["self", "system"], 0.1, 1.0, 1.0)  # let go of while open

    @keeps_freed
    def test_ten_thousand_blocks_keep_memory_flat(self):
        p = tare.PerformanceProfiler()

        def blocks(n):
            for _ in range(n):
                with p.profile("x"):
                    pass

        blocks(2000)
        before = _tare.memory_now()[0]
        blocks(10_000)
        self.assertLess(_tare.memory_now()[0] - before, 3 << 20)

    def test_ends_with_the_program(self):
        """An open block, sys.exit inside one, and an exception: the program ends as it would without."""
        for last, code in (("", 0), ("sys.exit(3)", 3), ("raise KeyError", 1)):
            script = f"import sys, tare\np = tare.PerformanceProfiler()\nb = p.profile('open').__enter__()\nwith p.profile('x'):\n    {last or 'pass'}\n"
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, code, done.stderr)


class Regression(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "baseline.json")
        self.addCleanup(self.folder.cleanup)

    def baseline(self, of):
        """Medians of sessions, or an entry as it is."""
        if not isinstance(of, dict):
            of = {"wall_time_s": sorted(of)[len(of) // 2], "sessions": [{"median_s": seconds} for seconds in of]}
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"op": of}, file)
        return tare.PerformanceRegressionDetector(self.path, on_regression=lambda result: self.alerts.append(result.operation))

    alerts = ()

    def check(self, detector, seconds):
        self.alerts = []
        for s in seconds:
            with detector.check_regression("op", threshold=0.2) as result:
                pass
            detector.observed["op"][-1] = s  # times of our choice
        detector._judge(result, detector.baseline["op"], detector.observed["op"])
        return result

    def test_verdicts(self):
        base, steady = [1.0, 1.02, 0.98, 1.01, 0.99], [1.0, 1.01, 0.99, 1.0]
        self.assertEqual(self.check(self.baseline(base), [1.5 * t for t in steady]).verdict, "regressed")
        self.assertGreater(self.check(self.baseline(base), [1.5 * t for t in steady]).confidence, 0.95)
        self.assertEqual(self.check(self.baseline(base), steady).verdict, "same")
        self.assertEqual(self.check(self.baseline(base), [0.5 * t for t in steady]).verdict, "improved")
        self.assertEqual(self.check(self.baseline([1.0, 2.0, 0.5, 1.4]), [1.3, 2.2, 0.9]).verdict, "inconclusive")
        cold = self.check(self.baseline(base), [2.0])  # one time, perhaps the first: no run like those of the baseline
        self.assertEqual(cold.verdict, "unverified")
        self.assertIn("Beyond the threshold", cold.why)
        self.assertFalse(known(cold.confidence))
        self.assertEqual(self.check(self.baseline([1.0]), [1.5, 1.52, 1.48]).verdict, "unverified")

    def test_times_in_doubt_are_not_the_same(self):
        """Twice the time, in times that differ fourfold: no regression can be called, but neither is it "same"."""
        found = self.check(self.baseline([1.0, 1.02, 0.98, 1.01, 0.99]), [1.0, 4.0, 2.0])
        self.assertEqual(found.verdict, "inconclusive")
        self.assertEqual(self.check(self.baseline([1.0, 1.02, 0.98]), [1.0, 1.01, 0.99, 1.0]).verdict, "same")

    def test_the_times_that_are_told_have_the_ratio_that_is_told(self):
        for sessions in ([1.05, 1.25, 1.7], [1.0, 3.0], [0.8]):
            found = self.check(self.baseline(sessions), [1.3, 1.31, 1.29])
            self.assertAlmostEqual(found.current_s / found.baseline_s, found.ratio)

    def test_far_beyond_any_noise_needs_no_spread(self):
        """The seed's own form, and times of one session, which are one run."""
        for entry in ({"wall_time_s": 0.01}, {"wall_time_s": 0.01, "samples_s": [0.01, 0.011, 0.009]}):
            found = self.check(self.baseline(entry), [0.05] * 12)
            self.assertEqual(found.verdict, "regressed")
            self.assertIn("No plausible noise", found.why)
            self.assertEqual(self.check(self.baseline(entry), [0.015] * 12).verdict, "unverified")
        self.assertEqual(self.check(self.baseline({"wall_time_s": 0.01}), [0.2]).verdict, "regressed")

    def test_from_where_on_it_is_far_beyond_is_what_the_page_says(self):
        for calls, within, beyond in ((1, 6.0, 6.2), (2, 6.0, 6.2), (3, 3.0, 3.1)):
            for times, verdict in ((within, "unverified"), (beyond, "regressed")):
                self.assertEqual(self.check(self.baseline({"wall_time_s": 0.01}), [0.01 * times] * calls).verdict, verdict, (calls, times))

    def test_the_drift_between_sessions_is_no_regression(self):
        """Sessions that differ by 3 %, times within one by 1 %: nothing changed, whatever the threshold."""
        import random

        draw = random.Random(13)
        alarms = {0.0: 0, 0.05: 0}
        for threshold in alarms:
            for _ in range(200):
                level = [draw.gauss(0, 0.03) for _ in range(4)]
                detector = self.baseline([math.exp(x) for x in level[:3]])
                times = [math.exp(level[3] + draw.gauss(0, 0.01)) for _ in range(10)]
                result = RegressionResult("op", threshold)
                detector._on_cpu["op"] = [1.0]
                alarmed = False
                for n in range(1, 11):  # each time is looked at
                    detector._judge(result, detector.baseline["op"], times[:n])
                    alarmed |= result.regressed
                alarms[threshold] += alarmed
        self.assertLessEqual(alarms[0.05], 200 * 0.05)
        self.assertLessEqual(alarms[0.0], 200 * 0.09)  # 5 % are asked for by confidence=0.95

    def test_alarm_warning_and_exception(self):
        self.baseline({"wall_time_s": 0.0001})
        for more, expected in (({}, tare.RegressionWarning), ({"raise_on_regression": True}, tare.PerformanceRegression)):
            detector = tare.PerformanceRegressionDetector(self.path, **more)
            with self.assertRaises(expected), warnings.catch_warnings():
                warnings.simplefilter("error" if not more else "ignore")
                for _ in range(3):
                    with detector.check_regression("op"):
                        time.sleep(0.005)

    def test_saved_whole_and_read_back(self):
        for sessions in (1, 2):
            detector = tare.PerformanceRegressionDetector(self.path)
            for _ in range(4):
                with detector.check_regression("op") as result:
                    pass
                detector.observed["op"][-1] = 0.001  # real ones may differ tenfold between the sessions
            if sessions == 2:
                detector._judge(result, detector.baseline["op"], detector.observed["op"])
            self.assertEqual(result.verdict, "no baseline" if sessions == 1 else "unverified")
            detector.save_baseline()
            detector.save_baseline()  # one session, however often it is saved
            again = tare.PerformanceRegressionDetector(self.path)
            self.assertEqual([one["times"] for one in again.baseline["op"]["sessions"]], [4] * sessions)
        detector.save_baseline(add=False)
        self.assertEqual(len(tare.PerformanceRegressionDetector(self.path).baseline["op"]["sessions"]), 1)
        self.assertEqual(os.listdir(self.folder.name), ["baseline.json"])

    def test_links_and_pipes_stay_what_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            real, link = os.path.join(folder, "real"), os.path.join(folder, "link")
            os.symlink(real, link)
            write_text(link, "bad \udc80 name")
            with open(real) as file:
                self.assertEqual(file.read(), "bad \\udc80 name")
            self.assertTrue(os.path.islink(link))
            self.assertEqual(sorted(os.listdir(folder)), ["link", "real"])
            missing = os.path.join(folder, "none", "file")
            with self.assertRaisesRegex(FileNotFoundError, re.escape(missing)):  # by its own name, not by a temporary one
                write_text(missing, "")
        reading, writing = os.pipe()
        write_text(f"/dev/fd/{writing}", "through")
        self.assertEqual(os.read(reading, 100), b"through")
        os.close(reading)
        os.close(writing)

    def test_a_block_that_fails_is_no_observation(self):
        detector = tare.PerformanceRegressionDetector(self.path)
        with self.assertRaises(KeyError), detector.check_regression("op") as result:
            raise KeyError
        self.assertEqual((result.verdict, detector.observed), ("failed", {}))

    def test_damaged_files_and_wrong_numbers(self):
        for text in ("{", "[]", '{"op": {}}', '{"op": {"wall_time_s": -1}}', '{"op": 3}', '{"op": {"wall_time_s": 1, "samples_s": ["x"]}}',
                     '{"op": {"wall_time_s": 1, "sessions": [3]}}', '{"op": {"wall_time_s": 1, "sessions": [{}]}}'):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.assertRaisesRegex(ValueError, "baseline.json"):
                tare.PerformanceRegressionDetector(self.path)
        self.assertRaises(ValueError, tare.PerformanceRegressionDetector, "none.json", confidence=2)
        with self.assertRaises(OSError):
            tare.PerformanceRegressionDetector("none.json").save_baseline("/proc/no/such/file.json")


class Production(unittest.TestCase):
    def test_counts_report_and_bounds(self):
        violated = []
        p = tare.ProductionProfiler(sla_s=0.9, max_entries=10, on_violation=violated.append)
        for i in range(100):
            with p.profile_request(i):
                pass
            p.log_metrics(i, (i + 1) / 100)
        report = p.generate_hourly_report()
        self.assertEqual((report["requests_processed"], report["sla_violations"], len(violated)), (100, 10, 10))
        self.assertAlmostEqual(report["average_latency"], 0.505)
        for share in (50, 95, 99):
            self.assertAlmostEqual(report[f"p{share}_latency"], share / 100, delta=0.011)
        self.assertEqual(len(p.metrics_log), 10)
        self.assertEqual(p.metrics_log[-1]["request_id"], 99)
        self.assertGreater(p.metrics_log[-1]["memory_mb"], 1)

    def test_what_is_no_latency_is_not_counted(self):
        p = tare.ProductionProfiler()
        for bad in (float("nan"), -1):
            with self.assertRaisesRegex(ValueError, f"request 7: {bad} is no latency"):
                p.log_metrics(7, bad)
        self.assertEqual((p.requests, len(p.metrics_log)), (0, 0))

    def test_an_alarm_that_fails_does_not_fail_the_request(self):
        p = tare.ProductionProfiler(sla_s=0.1, on_violation=lambda entry: 1 / 0)
        with self.assertLogs("tare", "ERROR"):
            self.assertEqual(p.log_metrics(1, 1.0)["request_id"], 1)

    def test_what_raised_before_it_could_be_logged_is_an_error(self):
        p = tare.ProductionProfiler()
        for i in range(10):
            with contextlib.suppress(TimeoutError):
                with p.profile_request(i):
                    if i % 5 == 0:
                        raise TimeoutError
                p.log_metrics(i, 0.01)
        report = p.generate_hourly_report()
        self.assertEqual((report["requests_processed"], report["errors"], report["not_logged"]), (8, 2, 2))
        p.log_metrics(0, 0.01)  # late: counted once
        report = p.generate_hourly_report()
        self.assertEqual((report["requests_processed"], report["errors"], report["not_logged"]), (9, 2, 1))
        p._pending[5].begun -= 2 * 3600 * 10**9
        self.assertEqual(p.generate_hourly_report()["not_logged"], 0)

    def test_no_requests(self):
        report = tare.ProductionProfiler().generate_hourly_report()
        self.assertEqual(report["requests_processed"], 0)
        self.assertFalse(known(report["p95_latency"]))

    def test_threads_lose_nothing_and_what_is_never_logged_is_forgotten(self):
        p = tare.ProductionProfiler(max_pending=20)

        def serve(thread):
            for i in range(200):
                with p.profile_request((thread, i)):
                    pass
                if i % 2:
                    p.log_metrics((thread, i), 0.001)

        threads = [threading.Thread(target=serve, args=(t,)) for t in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(p.generate_hourly_report()["requests_processed"], 800)
        self.assertLessEqual(len(p._pending), 20)
        self.assertEqual(p.log_metrics("never seen", 1.0)["internal_latency"], None)

    def test_an_old_hour_is_left_out(self):
        p = tare.ProductionProfiler()
        p.log_metrics(1, 1.0)
        p._minutes[-1].start -= 2 * 3600
        p.log_metrics(2, 3.0)
        report = p.generate_hourly_report()
        self.assertEqual((report["requests_processed"], report["sla_violations"], p.requests), (1, 1, 2))


if __name__ == "__main__":
    unittest.main()
