#!/usr/bin/env python3
"""`bitrail train` over verbs gives the losses that it gives over ucx: train.py TOOL

Two ranks, 20 steps of OnebitAdam, half of them compressed.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

STEPS = 20


def losses(tool, folder, transport):
    words = pathlib.Path(folder, "words.txt")
    draw = random.Random(5)
    some = "the quick brown fox jumps over a lazy dog and runs into dark woods".split()
    words.write_text(" ".join(draw.choice(some) for _ in range(12000)), encoding="ascii")
    result = pathlib.Path(folder, f"{transport}.json")
    command = [tool, "launch", "-n", "2", "--", tool, "train", "--layers", "1", "--width", "32", "--heads", "2",
               "--seq", "32", "--eval", "2", "--batch", "2", "--steps", str(STEPS), "--optimizer", "onebit-adam",
               "--freeze-step", str(STEPS // 2), "--corpus", str(words), "--json", str(result)]
    # Left alone UCX takes the soft RoCE devices, where its own protocol gives up early.
    variables = {"BITRAIL_TRANSPORT": transport, "UCX_TLS": "posix,sysv,self"}
    done = subprocess.run(command, env={**os.environ, **variables}, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90)
    if done.returncode != 0:
        sys.exit(f"FAILED: over {transport}: exit {done.returncode}\n{done.stdout}")
    steps = [json.loads(line) for line in result.read_text(encoding="utf-8").splitlines()]
    return [step["loss"] for step in steps if "loss" in step]


def main():
    with tempfile.TemporaryDirectory() as folder:
        ucx, verbs = (losses(sys.argv[1], folder, transport) for transport in ("ucx", "verbs"))
    print(f"ucx   {ucx}\nverbs {verbs}")
    if len(ucx) != STEPS or ucx != verbs:
        sys.exit(f"FAILED: {STEPS} equal losses")


if __name__ == "__main__":
    main()
