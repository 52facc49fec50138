#!/usr/bin/env python3
"""What networks and peers do to a job: faults.py RANK_PROGRAM ucx|verbs CASE

Outcome each time: right data everywhere, or an error at every rank in time that names the peer; nothing
hung, left behind or wrong (the rank program looks). Exit status 77: skipped, with the reason.
"""
import os
import random
import signal
import socket
import sys
import threading
import time

from hosts import Devices, LabHosts, require

PROGRAM, OVER = sys.argv[1], sys.argv[2]
TIMEOUT_MS = 4000
SLACK_S = 12  # for starting, closing, and a busy machine
RANKS = 3


def hosts(ranks=RANKS, count=None):
    return (LabHosts if OVER == "ucx" else Devices)(ranks, count)


def all_right(results):
    for rank, (code, out) in enumerate(results):
        require(code == 0 and "right " in out, f"rank {rank} got the right data")


def names(rank, out, peers):
    require(any(f"rank {peer}" in out for peer in peers), f"rank {rank}'s error names one of {peers}")


def all_refused(results, lost, dead=False):
    """Errors everywhere that name `lost`; at `lost` itself any peer. `dead`: nothing is asked of it."""
    for rank, (code, out) in enumerate(results):
        if rank == lost and dead:
            continue
        require(code == 3, f"rank {rank} ended with an error and nothing else")
        names(rank, out, [lost] if rank != lost else [peer for peer in range(len(results)) if peer != lost])


def job(peers, size=200_000, seconds=2, mode="collectives", timeout_ms=TIMEOUT_MS, **options):
    peers.launch([PROGRAM, mode, size, seconds], env={"BITRAIL_TIMEOUT_MS": timeout_ms}, **options)


def spoilt(*netem):
    with hosts(2) as peers:
        peers.spoil(*netem)
        job(peers, size=60_000, seconds=4, timeout_ms=20_000)
        all_right(peers.finish(40 + SLACK_S))


def loss():
    spoilt("loss", "1%")


def duplication():
    spoilt("duplicate", "5%")


def reordering():
    spoilt("delay", "2ms", "reorder", "25%", "50%")


def link_back():
    with hosts() as peers:
        job(peers, seconds=6, timeout_ms=20_000)
        peers.wait_running()
        peers.silence(2, True)
        time.sleep(2)
        peers.silence(2, False)
        all_right(peers.finish(25 + SLACK_S))


def link_gone():
    with hosts() as peers:
        job(peers, seconds=60)
        peers.wait_running()
        peers.link(2, "down")
        all_refused(peers.finish(2 * TIMEOUT_MS / 1000 + SLACK_S), 2)


def killed():
    with hosts() as peers:
        job(peers, seconds=60)
        peers.wait_running()
        peers.signal(1, signal.SIGKILL)
        all_refused(peers.finish(TIMEOUT_MS / 1000 + SLACK_S), 1, dead=True)


def stopped():
    with hosts() as peers:
        job(peers, seconds=60)
        peers.wait_running()
        peers.signal(1, signal.SIGSTOP)
        # The others end while it stands still; then it goes on, and has to see what happened.
        end = time.monotonic() + 2 * TIMEOUT_MS / 1000 + SLACK_S
        while any(peers.processes[rank].poll() is None for rank in (0, 2)) and time.monotonic() < end:
            time.sleep(0.05)
        ended = [peers.processes[rank].poll() is not None for rank in (0, 2)]
        peers.signal(1, signal.SIGCONT)
        results = peers.finish(TIMEOUT_MS / 1000 + SLACK_S)
        require(all(ended), "the others end while rank 1 stands still")
        all_refused(results, 1)


def stranger():
    """Random bytes to every port, from before the start until the end."""
    random.seed(3)
    ended, tries = threading.Event(), []

    def disturb(peers):
        peers.enter_host(0)
        kept = []
        while not ended.wait(0.02):
            for address in peers.listening(0):
                try:
                    other = socket.create_connection(address, timeout=1)
                    other.settimeout(0.2)
                    tries.append(address)
                    other.sendall(random.randbytes(random.choice([0, 1, 7, 64, 5000])))
                    kept.append(other)
                except OSError:
                    pass
            while len(kept) > 50:
                kept.pop(random.randrange(len(kept))).close()

    with hosts() as peers:
        thread = threading.Thread(target=disturb, args=(peers,))
        job(peers, seconds=3, timeout_ms=20_000, shell='[ "$BITRAIL_RANK" = 0 ] || sleep 1')
        thread.start()
        try:
            peers.wait_running()
            results = peers.finish(30)
        finally:
            ended.set()
            thread.join()
        all_right(results)
        print(f"{len(tries)} connections of strangers to {len(set(tries))} ports")
        require(len(tries) > 20, "the stranger reached the job")


def storm():
    # Software emulation is too slow for 32 ranks over verbs in a test's time.
    ranks = 32 if OVER == "ucx" else 10
    with hosts(ranks, 4 if OVER == "ucx" else 3) as peers:
        job(peers, size=ranks * 64, seconds=0, timeout_ms=60_000)
        all_right(peers.finish(120))


def few_descriptors():
    with hosts(8, 2) as peers:
        job(peers, seconds=1, timeout_ms=20_000, shell="ulimit -n 256")
        all_right(peers.finish(30 + SLACK_S))


def no_descriptors():
    """Too few to connect, or even to begin: an error that says so, everywhere."""
    for limit in (7, 9, 12, 24) if OVER == "ucx" else (12,):
        with hosts() as peers:
            job(peers, seconds=1, shell=f'[ "$BITRAIL_RANK" != 1 ] || ulimit -n {limit}')
            results = peers.finish(2 * TIMEOUT_MS / 1000 + SLACK_S)
        for rank, (code, out) in enumerate(results):
            require(code == 3, f"with {limit} files rank {rank} ended with an error")
            require("rank 1" in out or rank == 1, f"rank {rank}'s error names rank 1")
            require("ulimit -n" in out or "Too many open files" in out, f"rank {rank}'s error says of what")


def memlock():
    limit = "ulimit -l 64"
    with hosts() as peers:
        # Root is above the limit by a capability, which the ranks have to lose.
        peers.launch(["setpriv", "--inh-caps=-ipc_lock", "--bounding-set=-ipc_lock", PROGRAM, "collectives", 400_000, 1],
                     shell=limit, env={"BITRAIL_TIMEOUT_MS": 20_000})
        results = peers.finish(30 + SLACK_S)
    if all(code == 0 for code, _ in results):
        return all_right(results)
    for rank, (code, out) in enumerate(results):
        require(code == 3, f"rank {rank} ended with an error")
        require("ulimit -l" in out or "memlock" in out, f"rank {rank} says how to raise the limit")
    return None


def never_received():
    with hosts() as peers:
        job(peers, mode="never", size=8 << 20, seconds=2 * TIMEOUT_MS / 1000)
        results = peers.finish(3 * TIMEOUT_MS / 1000 + SLACK_S)
    for rank, (code, out) in enumerate(results):
        require(code == 3, f"rank {rank} ended with an error")
        names(rank, out, [1] if rank != 1 else [0, 2])


def memory_freed():
    with hosts() as peers:
        job(peers, mode="freed", size=8 << 20, seconds=1)
        results = peers.finish(2 * TIMEOUT_MS / 1000 + SLACK_S)
    require(results[1][0] != 4 and "BROKEN" not in results[1][1], "rank 1 ends by an error or a signal")
    for rank in (0, 2):
        code, out = results[rank]
        require(code in (0, 3), f"rank {rank} ended with an error, or right data")
        if code == 3:
            names(rank, out, [1])


if __name__ == "__main__":
    os.environ.pop("BITRAIL_TRANSPORT", None)
    {name: case for name, case in globals().items() if callable(case)}[sys.argv[3]]()
