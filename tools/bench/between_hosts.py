"""The part of tools/bench/collectives between hosts: the 1-bit allreduce on shaped links.

Four network namespaces, one rank each (tests/lab). In one round, one after the other: a plain TCP
stream, the 1-bit allreduce with block and with segment scales, Open MPI's MPI_Allreduce of the same
floats. Each row is the median over rounds of that round's ratio.
"""
import json
import subprocess
import sys
import tempfile

from support import BUILD, ROOT, TOOL, environment, median, progress

sys.path.insert(0, str(ROOT / "tests" / "lab"))
from lab import Lab, why_not  # noqa: E402

HOSTS = 4
BYTES = 64 << 20
STREAM_SECONDS = 1.5

# A receiver that prints bytes a second, from the first byte to the last; a sender of `seconds`.
RECEIVE = """
import socket, time
server = socket.create_server(("0.0.0.0", 29600)); print("ready", flush=True)
peer, _ = server.accept(); total = len(peer.recv(1 << 20)); start = time.monotonic(); total = 0
while True:
    got = len(peer.recv(1 << 20))
    if not got: break
    total += got; last = time.monotonic()
print(total / (last - start))
"""
SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 29600)); data = bytes(1 << 16)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end: peer.sendall(data)
"""

# (Mbit/s, {scale: bar on time over the wire's}, {scale: bar on speed over Open MPI})
LINKS = [(100, {"block": 1.12, "segment": 1.25}, {"block": 42, "segment": 38}),
         (1000, {}, {"block": 22, "segment": 14})]


def stream_goodput(lab):
    """Bytes a second of a TCP connection from host 1 to host 0."""
    receiver = lab.start(0, [sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
    receiver.stdout.readline()
    lab.start(1, [sys.executable, "-c", SEND, lab.address(0), str(STREAM_SECONDS)]).wait()
    return float(receiver.communicate(timeout=30)[0])


def onebit(lab, scale, iterations):
    """(seconds, bytes sent by a rank) of a 1-bit allreduce."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        status = lab.run([str(TOOL), "perf", "allreduce", "-b", str(BYTES), "-e", str(BYTES), "-n",
                          str(iterations), "-w", "2", "-c", "0", "--out-of-place", "--algo", "onebit",
                          "--scale", scale, "--json", file.name], stdout=subprocess.DEVNULL)
        if status != 0:
            sys.exit(f"bitrail perf between hosts ended with {status}")
        [row] = json.load(file)
        return row["out_of_place"]["time_us"] / 1e6, row["out_of_place"]["wire_bytes"]


def open_mpi(lab, iterations):
    """Seconds of MPI_Allreduce."""
    done = lab.mpirun([str(BUILD / "mpi_allreduce"), str(BYTES), str(BYTES), "2", str(iterations), "0"],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    if done.returncode != 0:
        sys.exit(f"Open MPI between hosts ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return float(done.stdout.split()[1]) / 1e6


def one_round(lab, iterations, peer_iterations):
    goodput = stream_goodput(lab)
    times = {scale: onebit(lab, scale, iterations) for scale in ("block", "segment")}
    peer = open_mpi(lab, peer_iterations)
    return {scale: (seconds * goodput / wire, peer / seconds) for scale, (seconds, wire) in times.items()}


def between_hosts(rows, quick):
    reason = why_not()
    if reason:
        progress(f"The part between hosts is left out: {reason}.")
        return
    for mbps, wire_bars, peer_bars in LINKS:
        rounds = 1 if quick else 3
        found = []
        with Lab(HOSTS, mbps=mbps) as lab:
            for turn in range(rounds):
                progress(f"between {HOSTS} hosts, {mbps} Mbit/s, round {turn + 1} of {rounds}")
                found.append(one_round(lab, 5 if quick else 11, 1 if quick or mbps < 1000 else 3))
        for scale in ("block", "segment"):
            name = f"1-bit 64 MiB, 4 hosts, {mbps} Mbit/s, {scale} scales:"
            wire = median(turn[scale][0] for turn in found)
            rows.add(f"{name} time over wire", wire, "x", f"<= {wire_bars[scale]}" if wire_bars else "")
            rows.add(f"{name} speed over MPI", median(turn[scale][1] for turn in found), "x",
                     f">= {peer_bars[scale]}")
