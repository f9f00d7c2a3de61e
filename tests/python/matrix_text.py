# SPDX-License-Identifier: MIT
"""The text profilers with nothing but the standard library, on every CPython: python matrix_text.py."""

import os
import tempfile
import time
import unittest
from array import array

import tare
from tare import _answers, _memory, _tare


def vectors(texts):
    time.sleep(0.0003)
    return [[float(len(text)), 1.0] for text in texts]


def scores(pairs):
    time.sleep(0.0003)
    return [[0.0, 1.0, 0.0] for _ in pairs]


def course_of(level):
    """What ten iterations of eight calls make of a level of memory, in MiB by call."""
    return _memory.memory_course(array("d", (level(call) * 2**20 for call in range(80))), 10)["growth"]


class Memory(unittest.TestCase):
    def test_a_rise_in_the_first_iteration_is_no_leak(self):
        self.assertIs(course_of(lambda call: 232 + (1.6 if call >= 8 else 0))["leak"], False)
        self.assertIs(course_of(lambda call: 232 + 0.05 * call)["leak"], True)

    def test_10_kb_a_call_are_a_leak(self):
        """It was "steady" beside an interval that excludes 0."""
        kept = course_of(lambda call: 100 + (call * 10_000 // 4096 * 4096) / 2**20)
        self.assertEqual((kept["verdict"], kept["leak"]), ("growing", True))
        self.assertGreater(kept["interval"][0], 0)
        self.assertAlmostEqual(kept["mb_per_iteration"], 80_000 / 2**20, delta=0.004)
        little = course_of(lambda call: 900 + call * 1000 / 2**20)  # too little yet: not a leak, not steady either
        self.assertEqual((little["verdict"], little["leak"]), ("inconclusive", None))

    def test_is_not_steady_beside_a_leak_of_the_runs_before(self):
        """A model that had kept 4.7 GiB of 10 KB a call: what 200 calls more kept went into free places, and was told steady beside the finding."""
        for findings, verdict, leak in (([], "steady", False), ([{"id": "memory.leak"}], "inconclusive", None)):
            growth = course_of(lambda call: 4800)
            _memory.not_steady_beside(growth, findings)
            self.assertEqual((growth["verdict"], growth["leak"]), (verdict, leak))
        rows = {"iterations": [], "growth": growth, "samples": 80}
        self.assertIn("80 calls: inconclusive, memory grew with the runs measured before", _answers._memory_rows(rows))
        kept = course_of(lambda call: 232 + 0.05 * call)
        _memory.not_steady_beside(kept, [{"id": "memory.leak"}])
        self.assertIs(kept["leak"], True)


class Text(unittest.TestCase):
    def test_embeddings(self):
        profiler = tare.EmbeddingProfiler(vectors, budget=0.05)
        found = profiler.profile([2, 4], num_texts=8, validate_accuracy=True)
        self.assertEqual([row["batch_size"] for row in found["batch_profiles"]], [2, 4])
        self.assertTrue(all(row["accuracy_metrics"]["consistent"] for row in found["batch_profiles"]))
        self.assertIn("EMBEDDING BATCH SIZE SUMMARY", str(found))
        with tempfile.TemporaryDirectory() as folder:
            path = found.save(folder, history=False)
            self.assertEqual(sorted(os.listdir(folder)), sorted([os.path.basename(path), found["run"]]))
        self.assertEqual(profiler.profile_memory(4, 4, 16)["memory"]["samples"], 16)
        self.assertEqual(len(profiler.profile_text_lengths([2, 4], 2, 4)["length_profiles"]), 2)

    def test_pairs(self):
        row = tare.NLIProfiler(scores, budget=0.05).profile_batch_size(batch_size=4, num_pairs=3)
        self.assertAlmostEqual(row["throughput_pairs_per_sec"] * row["latency_ms_per_pair"], 1000)
        with self.assertRaises(ValueError):
            tare.NLIProfiler(scores, [("a", "b")], ["neutral", "neutral"])

    def test_what_the_model_raises_comes_out(self):
        def broken(texts):
            raise KeyError("token")

        with self.assertRaises(KeyError):
            tare.EmbeddingProfiler(broken, budget=0.05).profile([2], num_texts=4)

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "under AddressSanitizer freed memory stays")
    def test_judging_keeps_nothing(self):
        at, rising = array("d", range(64)), array("d", (1e6 * x for x in range(64)))
        labels = array("q", [1] * 32)

        def judge(times):
            for _ in range(times):
                _tare.growth_of(at, rising)
                _tare.score_answers(rising, at, 2, "cosine")
                _tare.score_answers(rising, labels, 2, "accuracy")
                self.assertRaises(ValueError, _tare.growth_of, at, array("d"))

        judge(500)
        before = _tare.memory_now()[0]
        judge(5000)
        self.assertLess(_tare.memory_now()[0] - before, 1 << 20)


if __name__ == "__main__":
    unittest.main()
