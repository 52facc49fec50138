#!/usr/bin/env python3
"""The link emulation's times agree with the lab's within 10 %: emulation_test.py TRANSFER.

The same transfers run over UCX on shaped namespaces and over the emulation on loopback. A busy
machine only ever makes a run longer, so the shortest runs are compared, and when they disagree both
get further chances. Exit status 77: skipped, with the reason.
"""
import os
import subprocess
import sys
import tempfile

from lab import Lab, why_not

MBPS = 50
PIECE = 32 << 10
TOLERANCE = 0.10
ROUNDS = 8
# pattern, ranks, bytes to each peer
CASES = [("one", 2, 2_000_000), ("all", 4, 700_000)]


def duration(directory, ranks):
    times = []
    for rank in range(ranks):
        with open(f"{directory}/times.{rank}", encoding="ascii") as file:
            times.append([int(text) for text in file.read().split()])
    return (max(end for _, end in times) - min(start for start, _ in times)) / 1e9


def lab_time(transfer, lab, pattern, ranks, size):
    with tempfile.TemporaryDirectory() as directory:
        status = lab.run([transfer, directory, pattern, str(size), str(PIECE), "--bind", "eth0"], timeout=60)
        if status != 0:
            sys.exit(f"the transfer in the lab ended with {status}")
        return duration(directory, ranks)


def emulated_time(transfer, pattern, ranks, size):
    with tempfile.TemporaryDirectory() as directory:
        command = [transfer, directory, pattern, str(size), str(PIECE), "--bind", "127.0.0.1", "--mbps", str(MBPS)]
        processes = [subprocess.Popen(command, env={**os.environ, "BITRAIL_RANK": str(rank),
                                                    "BITRAIL_WORLD_SIZE": str(ranks)}) for rank in range(ranks)]
        statuses = [process.wait(timeout=60) for process in processes]
        if any(statuses):
            sys.exit(f"the emulated transfer ended with {statuses}")
        return duration(directory, ranks)


def agree(transfer, pattern, ranks, size):
    in_lab, emulated = [], []
    with Lab(ranks, mbps=MBPS) as lab:
        for _ in range(ROUNDS):
            in_lab.append(lab_time(transfer, lab, pattern, ranks, size))
            emulated.append(emulated_time(transfer, pattern, ranks, size))
            ratio = min(emulated) / min(in_lab)
            if abs(ratio - 1) <= TOLERANCE:
                break
    good = abs(ratio - 1) <= TOLERANCE
    print(f"{pattern}, {ranks} ranks, {size} bytes to each: lab {min(in_lab):.3f} s, "
          f"emulated {min(emulated):.3f} s, ratio {ratio:.3f} {'ok' if good else 'NOT within 10 %'}")
    return good


def main():
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return 77
    return 0 if all([agree(sys.argv[1], *case) for case in CASES]) else 1


if __name__ == "__main__":
    sys.exit(main())
