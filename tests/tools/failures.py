#!/usr/bin/env python3
"""Ranks that die, disagree or send NaN, as processes. See support.py.

ARGUMENTS[0] is the program of rank_program.cc.
"""
import os
import signal
import subprocess
import time

from support import ARGUMENTS, TOOL, Ranks, alive, children, environment, main, require

TIMEOUT_MS = 10_000
TIMEOUT, MISMATCH, NOT_FINITE, ABORTED = 6, 8, 9, 11  # bitrail_status_t


def killed(lost, *command, **variables):
    """SIGKILL to rank `lost` while the collective loops: all others end, naming it, in time."""
    with Ranks(4, *command, BITRAIL_TIMEOUT_MS=TIMEOUT_MS, **variables) as ranks:
        require(ranks.first_line(0), "the loop runs")
        time.sleep(0.5)
        ranks.kill(lost)
        results = ranks.finish(within_s=TIMEOUT_MS / 1000 + 5)
    for rank, (code, _, err) in enumerate(results):
        if rank == lost:
            continue
        require(code > 0, f"rank {rank} exits non-zero by itself")
        require(f"rank {lost} " in err or f"rank {lost}:" in err, f"rank {rank} names rank {lost}")
        require("peer lost" in err, f"rank {rank} says what happened")
        require("buffers unchanged" in err, f"nothing wrote into rank {rank}'s buffers afterwards")


def kill_large():
    killed(2, TOOL, "perf", "allreduce", "-b", "8M", "--loop", "--watch")


def kill_small():
    killed(1, TOOL, "perf", "allreduce", "-b", "8", "--loop", "--watch")


def kill_root():
    killed(0, TOOL, "perf", "allreduce", "-b", "1M", "--loop", "--watch")


def kill_onebit():
    killed(3, TOOL, "perf", "allreduce", "-b", "8M", "--algo", "onebit", "--loop", "--watch")


def kill_emulated():
    killed(1, TOOL, "perf", "allreduce", "-b", "1M", "--loop", "--watch", BITRAIL_LINK_MBPS=200)


def refused(mode, statuses, *texts):
    """Every rank ends with one of `statuses`, and rank_program saw that nothing changed (exit 3)."""
    with Ranks(4, ARGUMENTS[0], mode, BITRAIL_TIMEOUT_MS=TIMEOUT_MS) as ranks:
        results = ranks.finish(within_s=TIMEOUT_MS / 1000 + 5)
    for rank, (code, out, _) in enumerate(results):
        require(code == 3, f"rank {rank} was refused and nothing changed")
        require(any(f"status {status}:" in out for status in statuses), f"rank {rank} got {statuses}")
        for text in texts:
            require(text in out, f"rank {rank}'s text has '{text}'")


def not_a_number():
    refused("nan", [NOT_FINITE], "NaN")


def infinite():
    refused("inf", [NOT_FINITE], "Inf")


def count_mismatch():
    refused("count", [MISMATCH])


def type_mismatch():
    refused("type", [MISMATCH])


def collective_mismatch():
    # Where neither side gets a message of the other's, only the deadline tells.
    refused("collective", [MISMATCH, TIMEOUT], "rank 1")


def aborted():
    refused("abort", [ABORTED], "enough")


def launch(*command, **variables):
    return subprocess.Popen([str(TOOL), "launch", "-n", "4", "--", *map(str, command)], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment(BITRAIL_TIMEOUT_MS=TIMEOUT_MS, **variables))


def wait_dead(pids):
    end = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    require(not any(alive(pid) for pid in pids), "no rank is left")


def interrupt():
    launcher = launch(TOOL, "perf", "allreduce", "-b", "1M", "--loop")
    require(launcher.stdout.readline(), "the loop runs")
    pids = children(launcher.pid)
    require(len(pids) == 4, f"4 ranks are children of the launcher: {pids}")
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=15)
    require(launcher.returncode != 0, "an interrupted job does not exit 0")
    wait_dead(pids)


def launch_kill():
    launcher = launch(TOOL, "perf", "allreduce", "-b", "1M", "--loop")
    require(launcher.stdout.readline(), "the loop runs")
    pids = children(launcher.pid)
    os.kill(pids[2], signal.SIGKILL)
    _, err = launcher.communicate(timeout=20)
    print(err)
    require(launcher.returncode != 0, "a lost rank makes launch fail")
    wait_dead(pids)


main(globals())
