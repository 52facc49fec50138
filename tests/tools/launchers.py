#!/usr/bin/env python3
"""`bitrail perf` under every launcher. See support.py."""
import os

from support import TOOL, free_port, main, program, require, run

EXACT = ("allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall", "sendrecv")
SMALL = ("-b", "8", "-e", "256K", "-f", "32", "-n", "3", "-w", "1")


def launch_exact():
    for collective in EXACT:
        code, out, _ = run(TOOL, "launch", "-n", "4", "--", TOOL, "perf", collective, *SMALL)
        require(code == 0 and "# all correct" in out, f"perf {collective} under bitrail launch")
        require("4 ranks" in out, "all ranks are in one job")


def launch_types():
    for kind in ("half", "bfloat16", "double", "int32", "int64", "uint8"):
        for op in ("sum", "max") if "int" in kind else ("sum", "min", "avg"):
            code, out, _ = run(TOOL, "launch", "-n", "3", "--", TOOL, "perf", "allreduce", "-b", "1000",
                               "-e", "100000", "-f", "100", "-n", "1", "-w", "0", "-d", kind, "-o", op)
            require(code == 0 and "# all correct" in out, f"{kind} {op}")


def launch_onebit():
    for collective in ("allreduce", "reduce_scatter", "allgather"):
        for scale in ("segment", "block"):
            code, out, _ = run(TOOL, "launch", "-n", "4", "--", TOOL, "perf", collective, "-b", "1M", "-e",
                               "1M", "-n", "3", "-w", "1", "--algo", "onebit", "--scale", scale)
            require(code == 0, f"perf {collective} --algo onebit --scale {scale}")
            row = [line for line in out.splitlines() if "1048576" in line][-1].split()
            row = row[row.index("1048576"):]
            ratio, error = float(row[8]), float(row[11])
            require(31 < ratio <= 32, f"ratio {ratio}")
            require(0.01 < error < 1, f"relative error {error}")


def launch_binds():
    """Each rank gets its share of the processors, all together what the launcher has."""
    show = ("sh", "-c", "echo cpus $(awk '/Cpus_allowed_list/ {print $2}' /proc/self/status)")
    mine = os.sched_getaffinity(0)

    def seen(*options):
        code, out, _ = run(TOOL, "launch", *options, "--", *show)
        require(code == 0, f"launch {options}")
        return [parse_cpus(line.split("cpus ")[1]) for line in out.splitlines() if "cpus " in line]

    shares = seen("-n", str(len(mine)))
    require(all(len(share) == 1 for share in shares), f"one processor a rank: {shares}")
    require(set().union(*shares) == mine, f"all are used: {shares}")
    require(seen("-n", "1") == [mine], "a rank alone has them all")
    require(seen("-n", "1", "--no-bind") == [mine], "unbound")
    crowd = seen("-n", str(len(mine) + 1))
    require(all(share == mine for share in crowd), f"more ranks than processors: {crowd}")


def parse_cpus(text):
    cpus = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def open_mpi():
    mpirun = program("mpirun.openmpi")
    code, out, _ = run(mpirun, "-n", "4", TOOL, "perf", "allreduce", *SMALL)
    require(code == 0 and "# all correct" in out, "perf under Open MPI's mpirun")
    require("4 ranks, launcher pmix" in out, "PMIx told the rank")
    code, out, _ = run(mpirun, "-n", "4", TOOL, "perf", "allreduce", "-b", "1M", "-e", "4M", "-f", "4",
                       "-n", "3", "--algo", "onebit")
    require(code == 0 and "relative" not in out and "ratio" in out, "onebit under mpirun")


def hydra():
    mpirun = program("mpirun.mpich")
    code, out, _ = run(mpirun, "-n", "4", TOOL, "perf", "allreduce", *SMALL,
                       BITRAIL_RENDEZVOUS=f"127.0.0.1:{free_port()}", BITRAIL_SECRET="hydra-test")
    require(code == 0 and "# all correct" in out, "perf under MPICH's mpirun")
    require("4 ranks, launcher hydra" in out, "PMI_RANK told the rank")


def hydra_without_rendezvous():
    mpirun = program("mpirun.mpich")
    code, _, err = run(mpirun, "-n", "2", TOOL, "perf", "allreduce", *SMALL, BITRAIL_TIMEOUT_MS=3000)
    require(code != 0 and "BITRAIL_RENDEZVOUS" in err, "what is missing is named")


def torchrun_variables():
    # Two ranks started by hand, as torchrun would.
    import subprocess
    from support import environment
    port = free_port()
    ranks = [subprocess.Popen([str(TOOL), "perf", "allreduce", *SMALL], text=True, stdout=subprocess.PIPE,
                              env=environment(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1",
                                              MASTER_PORT=port, BITRAIL_SECRET="torch-test"))
             for rank in range(2)]
    outs = [rank.communicate(timeout=60)[0] for rank in ranks]
    print(outs[0])
    require(all(rank.returncode == 0 for rank in ranks), "both ranks exit 0")
    require("2 ranks, launcher torchrun" in outs[0], "torchrun's variables told the rank")


main(globals())
