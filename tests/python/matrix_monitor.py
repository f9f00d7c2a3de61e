# SPDX-License-Identifier: MIT
"""ModelMonitor on every CPython: what it counts, in threads and tasks, and what it writes."""

import asyncio
import inspect
import json
import os
import tempfile
import threading
import time
import unittest

import tare


class Monitor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_latency_is_that_of_the_calls(self):
        monitor = tare.ModelMonitor("model", slower_than=0.03)
        sleep = monitor(time.sleep)
        for seconds in [0.005] * 9 + [0.05]:
            sleep(seconds)
        seen = monitor.summary()
        self.assertEqual((seen["calls"], seen["errors"]), (10, 0))
        self.assertGreaterEqual(seen["slow"], 1)
        self.assertGreaterEqual(seen["latency"]["p50"], 5)
        self.assertGreaterEqual(seen["latency"]["max"], 50)
        self.assertGreater(seen["latency"]["mean"], seen["latency"]["p50"])
        self.assertIn("too few", seen["latency"]["p99"].reason)
        self.assertLess(seen["cpu"]["during_inference"], 0.9)
        self.assertIn("10 inferences", str(monitor))

    def test_units_errors_and_reset(self):
        monitor = tare.ModelMonitor("model")
        with monitor.inference(units=32):
            sum(range(100000))
        with self.assertRaisesRegex(KeyError, "mine"):
            with monitor.inference(units=8):
                raise KeyError("mine")
        seen = monitor.summary()
        self.assertEqual((seen["calls"], seen["errors"]), (2, 1))
        self.assertAlmostEqual(seen["throughput"]["units_per_second"], 32 / seen["seconds"])
        monitor.reset()
        with self.assertRaisesRegex(ValueError, "no inference"):
            monitor.summary()

    def test_a_call_from_before_a_reset_does_not_count(self):
        monitor = tare.ModelMonitor()
        before, after = monitor.inference(units=10), monitor.inference(units=1)
        before.__enter__()
        monitor.reset()
        after.__enter__()
        before.__exit__(None, None, None)
        after.__exit__(None, None, None)
        self.assertEqual((monitor.summary()["calls"], monitor._units), (1, 1))

    def test_generators_are_inferences_until_their_end(self):
        monitor = tare.ModelMonitor()

        @monitor
        def tokens(n):
            for i in range(n):
                time.sleep(0.01)
                yield i
            return "end"

        @monitor
        async def stream(n):
            for i in range(n):
                await asyncio.sleep(0.01)
                yield i

        async def read():
            return [item async for item in stream(3)]

        self.assertEqual((list(tokens(3)), asyncio.run(read())), ([0, 1, 2], [0, 1, 2]))
        self.assertEqual(next(tokens(3)), 0)  # read no further: no error of the model
        seen = monitor.summary()
        self.assertEqual((seen["calls"], seen["errors"]), (3, 0))
        self.assertGreaterEqual(seen["latency"]["mean"], 20)
        self.assertTrue(inspect.isgeneratorfunction(tokens) and inspect.isasyncgenfunction(stream))

    def test_memory_is_seen_to_grow(self):
        monitor = tare.ModelMonitor("model")
        kept = []
        for _ in range(4):
            with monitor.inference():
                kept.append(bytearray(8 << 20))
                time.sleep(0.11)
        memory = monitor.summary()["memory"]
        self.assertGreater(memory["growth"], 20 << 20)
        self.assertGreaterEqual(memory["peak"], memory["average"])

    def test_threads_and_tasks_overlap(self):
        monitor = tare.ModelMonitor("model")
        sleep = monitor(time.sleep)
        threads = [threading.Thread(target=sleep, args=(0.1,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(monitor.summary()["calls"], 8)
        self.assertGreater(monitor.summary()["most_at_once"], 1)

        async def main():
            await asyncio.gather(*(wait() for _ in range(20)))

        @monitor
        async def wait():
            await asyncio.sleep(0.05)

        self.assertTrue(inspect.iscoroutinefunction(wait))
        asyncio.run(main())
        seen = monitor.summary()
        self.assertEqual((seen["calls"], seen["most_at_once"]), (28, 20))
        self.assertLessEqual(seen["cpu"]["inference_share_of_time"], 1.0)

    def test_percentiles_are_of_the_latest_calls(self):
        monitor = tare.ModelMonitor("model", window=20)
        slow, fast = monitor(lambda: time.sleep(0.01)), monitor(lambda: None)
        for _ in range(5):
            slow()
        for _ in range(20):
            fast()
        seen = monitor.summary()
        self.assertEqual((seen["calls"], seen["latency"]["of_latest"]), (25, 20))
        self.assertGreaterEqual(seen["latency"]["max"], 10)
        self.assertLess(seen["latency"]["p50"], seen["latency"]["max"] / 2)

    def test_it_is_saved_as_json_without_nan(self):
        monitor = tare.ModelMonitor("a model/x", folder=os.path.join(self.folder, "results"))
        with monitor.inference():
            pass
        path = monitor.save()
        self.assertEqual(os.path.dirname(path), os.path.join(self.folder, "results"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("NaN", text)
        self.assertEqual(json.loads(text)["latency"]["p99"], None)
        with self.assertRaises(OSError):
            monitor.save(os.path.join(self.folder, "no", "such", "folder.json"))

    def test_bad_window(self):
        with self.assertRaisesRegex(ValueError, "window"):
            tare.ModelMonitor(window=0)


if __name__ == "__main__":
    unittest.main()
