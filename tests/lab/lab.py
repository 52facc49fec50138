"""Test hosts on one machine: network namespaces on a bridge, with links shaped by tc.

Each host is a network namespace with its own IPC namespace and host name (h0, h1, ...), so that
nothing in it can take shared memory for a network. The bridge lives in a namespace of its own:
nothing outside is touched, and addresses cannot collide with the machine's.

Each host's link is shaped in both directions: what it sends on its own end, what it receives on the
bridge's end (token bucket, then `us` of delay by netem on the way in). TCP in every host uses the one
congestion control that every kernel has, reno, whatever the machine is set to: so figures of two
machines are comparable, and repeat best (docs/benchmarks.md). Needs root.

    with Lab(4, mbps=100, us=50) as lab:
        lab.run(["prog", "args"])                       # one rank in each host
        lab.command(2, ["prog"])                        # a command line that runs in host 2
        lab.mpirun(["prog", "args"])                    # the same by Open MPI over TCP
"""
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time

PORT = 29577
CONGESTION = "reno"


class LabError(Exception):
    """The lab cannot be made here; the text says why."""


def why_not(us=0):
    """None when a lab can be made on this machine, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc", "unshare"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (packages iproute2, util-linux)"
    try:
        with Lab(1, mbps=100, us=us):
            return None
    except LabError as error:
        return str(error)


class Lab:
    """Makes `hosts` test hosts; close() or leaving the with-block removes them."""

    def __init__(self, hosts, mbps=0, us=0):
        self.hosts, self.mbps, self.us = hosts, mbps, us
        self.name = f"brl{os.getpid()}x{secrets.token_hex(2)}"
        self.processes = []
        self.made = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def address(self, host):
        return f"10.77.{host // 250}.{host % 250 + 1}"

    def namespace(self, host):
        return f"{self.name}-h{host}"

    def _do(self, *command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            text = done.stderr.strip() or f"exit {done.returncode}"
            if "qdisc kind is unknown" in text and "netem" in command:
                text = "this kernel has no netem (sch_netem), so links cannot be delayed"
            raise LabError(f"{' '.join(command)}: {text}")

    def _namespace(self, name):
        self._do("ip", "netns", "add", name)
        self.made.append(name)
        self._do("ip", "-n", name, "link", "set", "lo", "up")

    def _make(self):
        switch = f"{self.name}-switch"
        self._namespace(switch)
        self._do("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        self._do("ip", "-n", switch, "link", "set", "bridge", "up")
        names = "127.0.0.1 localhost\n" + "".join(
            f"{self.address(host)} h{host}\n" for host in range(self.hosts))
        for host in range(self.hosts):
            name, port = self.namespace(host), f"port{host}"
            self._namespace(name)
            # `ip netns exec` puts this file in the place of /etc/hosts.
            os.makedirs(f"/etc/netns/{name}", exist_ok=True)
            with open(f"/etc/netns/{name}/hosts", "w", encoding="ascii") as file:
                file.write(names)
            self._do("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port,
                     "netns", switch)
            self._do("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
            self._do("ip", "-n", name, "address", "add", f"{self.address(host)}/16", "dev", "eth0")
            self._do("ip", "-n", name, "link", "set", "eth0", "up")
            self._do("ip", "-n", name, "route", "change", "10.77.0.0/16", "dev", "eth0", "src",
                     self.address(host), "congctl", CONGESTION)
            self._shape(name, "eth0", 0)
            self._shape(switch, port, self.us)

    def _shape(self, namespace, device, us):
        parent = ["root", "handle", "1:"]
        if us > 0:
            self._do("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "netem", "delay",
                     f"{us}us", "limit", "100000")
            parent = ["parent", "1:1", "handle", "2:"]
        if self.mbps > 0:
            # The burst is what the timers need to keep up. A busy kernel serves them a time slice late, and
            # the tokens of that time would be lost, which no real link does: four milliseconds, but no
            # more than a GSO frame or half a millisecond, since what an idle link saved up is sent for free.
            # The queue is deep enough that several senders to one receiver lose little.
            bytes_ms = self.mbps * 1e6 / 8 / 1000
            burst = int(max(4096, 0.5 * bytes_ms, min(4 * bytes_ms, 1 << 16)))
            self._do("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "tbf", "rate",
                     f"{self.mbps}mbit", "burst", str(burst), "limit", str(4 << 20))

    def command(self, host, command):
        """The command line that runs `command` in a host."""
        return ["ip", "netns", "exec", self.namespace(host), "unshare", "--ipc", "--uts", "sh", "-c",
                f'echo h{host} > /proc/sys/kernel/hostname; exec "$@"', "sh", *command]

    def start(self, host, command, env=None, **options):
        process = subprocess.Popen(self.command(host, command), env={**os.environ, **(env or {})},
                                   start_new_session=True, **options)
        self.processes.append(process)
        return process

    def environment(self, rank):
        return {"BITRAIL_RANK": str(rank), "BITRAIL_WORLD_SIZE": str(self.hosts),
                "BITRAIL_RENDEZVOUS": f"{self.address(0)}:{PORT}", "BITRAIL_SECRET": self.name,
                "BITRAIL_JOB_ID": self.name, "BITRAIL_INTERFACE": "eth0"}

    def run(self, command, env=None, timeout=None, stdout=None):
        """One rank in each host; ends all when one fails. Returns the first failing exit status.
        `stdout` takes rank 0's output (subprocess.PIPE is not for long ones)."""
        ranks = [self.start(rank, command, {**self.environment(rank), **(env or {})},
                            stdout=stdout if rank == 0 else None) for rank in range(self.hosts)]
        deadline = None if timeout is None else time.monotonic() + timeout
        while any(rank.poll() is None for rank in ranks):
            failed = next((rank.returncode for rank in ranks if rank.poll() not in (None, 0)), None)
            if failed is not None or (deadline is not None and time.monotonic() > deadline):
                # The others find out by themselves and say why; they get a moment for it.
                end = time.monotonic() + 10
                while time.monotonic() < end and any(rank.poll() is None for rank in ranks):
                    time.sleep(0.02)
                self._kill()
                return 124 if failed is None else _status(failed)
            time.sleep(0.02)
        return next((_status(rank.returncode) for rank in ranks if rank.returncode != 0), 0)

    def mpirun_command(self, command):
        """Open MPI's launcher over these hosts, to be run in host 0 (command(0, ...) does)."""
        agent = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rsh_agent")
        hosts = ",".join(f"h{host}" for host in range(self.hosts))
        return self.command(0, [
            "env", f"BITRAIL_LAB={self.name}", "mpirun", "--allow-run-as-root", "-np",
            str(self.hosts), "--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1",
            "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca",
            "oob_tcp_if_include", "eth0", "--mca", "rmaps_base_oversubscribe", "1", "--bind-to",
            "none", *command])

    def mpirun(self, command, **options):
        return subprocess.run(self.mpirun_command(command), **options)

    def _kill(self):
        for process in self.processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        self.processes = []

    def close(self):
        self._kill()
        for name in self.made:
            # What is left in a namespace (an MPI daemon of a job that failed) goes with it.
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in pids.stdout.split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)
        self.made = []
        try:
            os.rmdir("/etc/netns")  # if it was ours alone
        except OSError:
            pass


def _status(returncode):
    return 128 - returncode if returncode < 0 else returncode


def exit_on_signals():
    """Turns SIGTERM and SIGHUP into an exit that runs the clean-up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
