"""Hosts for the ranks of a faults test, with links that can be cut and spoilt.

LabHosts are network namespaces (tests/lab), for ucx over TCP. Devices are the soft RoCE devices of
tests/lab/rdma-vm, one for each rank, for verbs: such a device knows no namespaces, so all ranks share the
guest's.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lab"))
from lab import Lab, LabError, why_not  # noqa: E402  pylint: disable=wrong-import-position


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def require(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def do(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """Ranks on hosts, `ranks_per_host` on each. Their output is kept and printed at the end."""

    def __init__(self, ranks):
        self.ranks, self.processes, self.outputs = ranks, [], []

    def launch(self, command, shell="", env=None):
        """Starts all ranks; `shell` is what sh does before it becomes the program (ulimit ...)."""
        for rank in range(self.ranks):
            self.launch_rank(rank, command, shell, env)

    def launch_rank(self, rank, command, shell="", env=None):
        variables = {**os.environ, **self.environment(rank), **{k: str(v) for k, v in (env or {}).items()}}
        output = os.memfd_create(f"rank{rank}")
        words = ["sh", "-c", f'{shell}\nexec "$@"', "sh", *map(str, command)]
        self.processes.append(subprocess.Popen(self.wrap(rank, words), env=variables, start_new_session=True,
                                               stdin=subprocess.DEVNULL, stdout=output, stderr=output))
        self.outputs.append(output)

    def output(self, rank):
        return os.pread(self.outputs[rank], 1 << 20, 0).decode(errors="replace")

    def wait_running(self, seconds=60):
        """Until every rank has been through a first, right, round."""
        end = time.monotonic() + seconds
        for rank in range(self.ranks):
            while "running" not in self.output(rank):
                if time.monotonic() > end or self.processes[rank].poll() is not None:
                    self.show()
                    require(False, f"rank {rank} comes to run")
                time.sleep(0.02)

    def signal(self, rank, number):
        self.processes[rank].send_signal(number)

    def finish(self, seconds):
        """[(exit status, output)] by rank; all must have ended in `seconds`."""
        end = time.monotonic() + seconds
        hanging = []
        for rank, process in enumerate(self.processes):
            try:
                process.wait(max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                hanging.append(rank)
        self.show()
        require(not hanging, f"all ranks end within {seconds} s; {hanging} did not")
        return [(process.returncode, self.output(rank)) for rank, process in enumerate(self.processes)]

    def show(self):
        for rank, process in enumerate(self.processes):
            print(f"rank {rank}: exit {process.poll()}\n{self.output(rank)}", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for output in self.outputs:
            os.close(output)
        self.close()


class LabHosts(Hosts):
    def __init__(self, ranks, hosts=None):
        super().__init__(ranks)
        try:
            self.lab = Lab(hosts or ranks)
        except (LabError, OSError) as error:
            skip(why_not() or str(error))
        self.count = hosts or ranks

    def environment(self, rank):
        return {**self.lab.environment(rank % self.count), "BITRAIL_RANK": str(rank),
                "BITRAIL_WORLD_SIZE": str(self.ranks), "BITRAIL_TRANSPORT": "ucx", "UCX_TLS": "tcp,self"}

    def wrap(self, rank, words):
        return self.lab.command(rank % self.count, words)

    def link(self, rank, state):
        do("ip", "-n", f"{self.lab.name}-switch", "link", "set", f"port{rank % self.count}", state)

    def silence(self, rank, silent):
        self.link(rank, "down" if silent else "up")

    def spoil(self, *netem):
        for host in range(self.count):
            do("tc", "-n", self.lab.namespace(host), "qdisc", "add", "dev", "eth0", "root", "netem", *netem)

    def listening(self, rank):
        """Addresses that rank `rank` listens at."""
        found = do("ip", "netns", "exec", self.lab.namespace(rank), "cat", "/proc/net/tcp")
        ports = re.findall(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A ", found, re.MULTILINE)
        return [(self.lab.address(rank), int(port, 16)) for port in ports]

    def enter_host(self, rank):
        """Puts this thread into the host's network; what it opens from now on is there."""
        import ctypes  # pylint: disable=import-outside-toplevel
        fd = os.open(f"/var/run/netns/{self.lab.namespace(rank)}", os.O_RDONLY)
        require(ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) == 0, "setns works")
        os.close(fd)

    def close(self):
        self.lab.close()


class Devices(Hosts):
    """Rank r uses rxe<r>; see tests/lab/rdma-vm/guest for the bridge they are on."""

    def __init__(self, ranks, hosts=None):
        super().__init__(ranks)
        self.count = hosts or ranks
        if not os.path.exists(f"/sys/class/infiniband/rxe{self.count - 1}"):
            skip(f"there are not {self.count} soft RoCE devices (run this by tests/lab/rdma-vm/run)")
        with socket.socket() as probe:
            probe.bind(("10.88.0.1", 0))
            self.port = probe.getsockname()[1]

    def environment(self, rank):
        return {"BITRAIL_RANK": str(rank), "BITRAIL_WORLD_SIZE": str(self.ranks), "BITRAIL_SECRET": "faults",
                "BITRAIL_JOB_ID": f"faults{os.getpid()}", "BITRAIL_RENDEZVOUS": f"10.88.0.1:{self.port}",
                "BITRAIL_TRANSPORT": "verbs", "BITRAIL_IB_HCA": f"=rxe{rank % self.count}"}

    def wrap(self, rank, words):
        return words

    def link(self, rank, state):
        do("ip", "link", "set", f"p{rank % self.count}", state)

    def silence(self, rank, silent):
        """Loses everything on the way; the port does not go down, which would end its connections."""
        for device in (f"d{rank}", f"p{rank}"):
            do("tc", "qdisc", *(("add", "dev", device, "root", "netem", "loss", "100%") if silent else
                                ("delete", "dev", device, "root")))

    def spoil(self, *netem):
        for device in range(self.count):
            do("tc", "qdisc", "add", "dev", f"d{device}", "root", "netem", *netem)

    def listening(self, rank):
        found = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii")
        ports = re.findall(r"^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A ", found, re.MULTILINE)
        return [("10.88.0.1", int(port, 16)) for port in ports]

    def enter_host(self, rank):
        pass

    def close(self):
        for device in range(self.count):
            for end in (f"d{device}", f"p{device}"):
                subprocess.run(["tc", "qdisc", "delete", "dev", end, "root"], check=False, stderr=subprocess.DEVNULL)
            do("ip", "link", "set", f"p{device}", "up")
