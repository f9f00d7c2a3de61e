# SPDX-License-Identifier: MIT
"""The optimizers with nothing but the standard library, on every CPython: python matrix_tune.py."""

import os
import random
import tempfile
import time
import unittest

import tare
from tare import _tune_data_kept as kept
from tare import _tune_data_run as run


class Waits(list):
    def __getitem__(self, i):
        time.sleep(0.002)
        return super().__getitem__(i)


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.environ.update, {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", "")})
        os.environ["XDG_CACHE_HOME"] = folder.name

    def test_configurations(self):
        config = tare.DataOptimizationConfig(budget_s=3)
        with self.assertRaisesRegex(TypeError, "did you mean 'budget_s'"):
            tare.DataOptimizationConfig(budget=3)
        with self.assertRaisesRegex(ValueError, "seconds above 0"):
            config.budget_s = -1

    def test_confirm_finds_a_gain_and_none(self):
        slow, fast = (lambda s=s: time.sleep(s) for s in (0.01, 0.001))
        self.assertEqual(tare.confirm(slow, fast, unit_s=0.02).verdict, "confirmed")
        self.assertEqual(tare.confirm(fast, slow, unit_s=0.02).verdict, "no_gain")
        self.assertEqual(tare.confirm(lambda: 1, lambda: 2, same=lambda a, b: None if a == b else "numbers").verdict, "different_data")

    def test_decisions_come_back(self):
        plan = {"mode": "threads", "workers": 3, "depth": 2}
        mark = kept.mark({"dataset": Waits(range(9)), "batch_size": 3}, [1, 2, 3], len, "order")
        self.assertEqual(mark, kept.mark({"dataset": Waits(range(9)), "batch_size": 3}, [1, 2, 3], len, "order"))
        self.assertIsNone(kept.recall(mark))
        kept.keep(mark, plan, 0.5)
        self.assertEqual(kept.recall(mark)["plan"], plan)

    def test_a_plain_loader_in_threads_gives_the_same(self):
        for workers in (0, 1, 4):
            random.seed(4)
            loader = run.Plain(Waits(range(20)), 3, shuffle=True, num_threads=workers)
            batches = [list(batch) for batch in loader]
            if not workers:
                first = batches
            self.assertEqual(batches, first)
        self.assertEqual(len(loader), 7)

    def test_preprocessing_gives_the_same(self):
        optimizer = tare.PreprocessingOptimizer(tare.DataOptimizationConfig(budget_s=1))
        with optimizer.optimize_preprocessing_pipeline([str.lower, str.strip], [f" A {i} " for i in range(20)]) as pipeline:
            self.assertEqual(pipeline([" B ", " C "]), ["b", "c"])

    def test_memory_is_compared_in_children(self):
        optimizer = tare.MemoryOptimizer(tare.DataOptimizationConfig(budget_s=60))
        tuned = optimizer.confirm(lambda: bytearray(b"x") * (40 << 20), lambda: bytearray(b"x") * (20 << 20))
        self.assertEqual(tuned.verdict, "confirmed", str(tuned))
        self.assertRegex(tuned.gain_text(), "(49|50|51)% less")  # what the interpreter itself holds is in both
        with optimizer.memory_context() as block:
            bytearray(4 << 20)
        self.assertIn("given back", str(block))


if __name__ == "__main__":
    unittest.main()
