#!/usr/bin/env python3
"""The table of ./quickstart from made-up records: figures, and that each claim can fail.

usage: quickstart_report.py FOLDER_OF_REPORT_PY
"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop())
from report import claims, figures, table  # noqa: E402


def run(phases, final_loss):
    """(records, summary) of a run; phases is [(name, steps, ms, bytes)]."""
    records = [{"step": 0, "phase": name, "step_ms": ms, "comm_ms": 0.9 * ms, "wire_bytes": size}
               for name, steps, ms, size in phases for _ in range(steps)]
    return records, {"world_size": 4, "parameters": 1000, "final_loss": final_loss,
                     "held_out_loss": final_loss, "unigram_entropy": 3.0}


def example(adam_loss=2.0, onebit_loss=2.01, compressed_ms=100.0, compressed_bytes=31_000):
    return figures(run([("full", 100, 1000.0, 1_000_000)], adam_loss),
                   run([("full", 15, 1000.0, 1_000_000), ("compressed", 85, compressed_ms, compressed_bytes)],
                       onebit_loss), 10.0)


def held(result):
    return [holds for _, holds in claims(result)]


class QuickstartReport(unittest.TestCase):
    def test_figures(self):
        result = example()
        self.assertAlmostEqual(result["speedup_end_to_end"], 100 / 23.5)
        self.assertAlmostEqual(result["speedup_compressed_phase"], 10)
        self.assertAlmostEqual(result["compressed_volume_ratio"], 1000 / 31)
        self.assertEqual(result["full_precision_steps"], 15)

    def test_all_claims_hold(self):
        text, holds = table(example())
        self.assertTrue(holds)
        self.assertNotIn("NOT met", text)

    def test_each_claim_can_fail(self):
        self.assertEqual(held(example(onebit_loss=2.05)), [False, True, True, True])
        self.assertEqual(held(example(onebit_loss=1.95)), [False, True, True, True])
        self.assertEqual(held(example(adam_loss=2.8, onebit_loss=2.81)), [True, False, True, True])
        self.assertEqual(held(example(compressed_bytes=40_000)), [True, True, False, True])
        self.assertEqual(held(example(compressed_ms=300.0)), [True, True, True, False])
        text, holds = table(example(compressed_ms=300.0))
        self.assertFalse(holds)
        self.assertIn("NOT met", text)


unittest.main()
