"""The main job of ./quickstart: measure the computing, choose the link, train twice, compare.

The emulated link is as slow as it has to be for Adam to spend 90 % of a step communicating, the share
that the 1-bit Adam paper (arXiv 2102.02888) measured on Ethernet.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from report import figures, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "tools" / "bitrail"
RANKS = 4
COMMUNICATION_SHARE = 0.90
# Ranks that wait for the link leave the cores to each other, so computing is faster than in the
# calibration, where all compute at once.
WITH_LINK = 0.8
FREEZE_SHARE = 0.15
CALIBRATION_STEPS = 8
# A busy machine computes slowly, and the link would become slow with it. This bound on Adam's step
# keeps the whole within some minutes; what is then shown is less than the link could do.
MAX_SECONDS = 220


def train(name, steps, options, link_mbps=None):
    """Runs the trainer to its end, showing its output; (records of the steps, summary)."""
    path = ROOT / "build" / f"quickstart-{name}.jsonl"
    # `env` keeps this script from depending on what the caller's environment holds.
    link = ["env", f"BITRAIL_LINK_MBPS={link_mbps:.1f}"] if link_mbps else []
    command = [*link, TOOL, "launch", "-n", RANKS, "--", TOOL, "train", "--steps", steps, "--json", path,
               *options]
    print("+", " ".join(map(str, command)), flush=True)
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"The training run failed with exit code {done.returncode}.")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "step" in line], lines[-1]["summary"]


def choose_link(records, steps):
    """Mbit/s at which the exchange takes COMMUNICATION_SHARE of a step; ms and bytes of a step."""
    steady = records[len(records) // 2:]
    compute_ms = WITH_LINK * statistics.median(record["compute_ms"] for record in steady)
    wire_bytes = statistics.median(record["wire_bytes"] for record in steady)
    communication_ms = min(compute_ms * COMMUNICATION_SHARE / (1 - COMMUNICATION_SHARE),
                           MAX_SECONDS * 1e3 / steps - compute_ms)
    communication_ms = max(communication_ms, compute_ms)
    return wire_bytes * 8 / 1e6 / (communication_ms / 1e3), compute_ms, wire_bytes


def main():
    parser = argparse.ArgumentParser(prog="./quickstart")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--corpus")
    options = parser.parse_args()
    common = ["--batch", "4", *(["--corpus", options.corpus] if options.corpus else [])]

    print("\n== Measuring the computing (no link emulation)", flush=True)
    records, _ = train("calibration", CALIBRATION_STEPS, [*common, "--eval", "0"])
    mbps, compute_ms, wire_bytes = choose_link(records, options.steps)
    share = 1 / (1 + compute_ms / (wire_bytes * 8 / 1e3 / mbps))
    print(f"Computing takes {compute_ms:.0f} ms a step and Adam sends {wire_bytes / 1e6:.2f} MB: with "
          f"{mbps:.1f} Mbit/s a rank, about {share:.0%} of its step is communication.")
    if share < COMMUNICATION_SHARE - 0.01:
        print("That is less than wanted: this machine is busy or slow, and a slower link would take too long.")

    freeze = max(1, round(options.steps * FREEZE_SHARE))
    print(f"\n== Adam, {RANKS} ranks, {options.steps} steps", flush=True)
    adam = train("adam", options.steps, [*common, "--optimizer", "adam"], mbps)
    print(f"\n== 1-bit Adam, the same with --freeze-step {freeze}", flush=True)
    onebit = train("onebit", options.steps,
                   [*common, "--optimizer", "onebit-adam", "--freeze-step", freeze], mbps)

    result = figures(adam, onebit, mbps)
    path = ROOT / "build" / "quickstart.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text, holds = table(result)
    print(text)
    print(f"\nThe same figures are in {path.relative_to(ROOT)}.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
