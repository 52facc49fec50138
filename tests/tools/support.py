"""For tests that run the `bitrail` tool and rank programs as processes.

A test is a function; `main(globals())` runs the one named on the command line:
TEST.py TOOL CASE [more arguments, in `ARGUMENTS`]. Exit code 77 skips (meson's rule).
"""
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

TOOL = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
ARGUMENTS = sys.argv[3:]
TIMEOUT_S = 120


def skip(reason):
    print(reason)
    sys.exit(77)


def program(name):
    """The path of a program that a test needs; without it the test is skipped."""
    return shutil.which(name) or skip(f"{name} is not installed")


def environment(**variables):
    """This process's environment without BITRAIL_ and launcher variables, plus `variables`."""
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(("BITRAIL_", "OMPI_", "PMI", "PMIX_"))}
    # Open MPI refuses root and more ranks than cores without being told.
    inherited.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                     OMPI_MCA_rmaps_base_oversubscribe="1")
    return inherited | {name: str(value) for name, value in variables.items()}


def run(*command, **variables):
    """Runs to the end; returns (exit code, stdout, stderr)."""
    done = subprocess.run([str(word) for word in command], env=environment(**variables), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False)
    print(f"+ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}= {done.returncode}", flush=True)
    return done.returncode, done.stdout, done.stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ranks:
    """Ranks as processes of this test, which may kill them. Ends them all on leaving."""

    def __init__(self, count, *command, **variables):
        common = {"BITRAIL_RENDEZVOUS": f"127.0.0.1:{free_port()}", "BITRAIL_WORLD_SIZE": count,
                  "BITRAIL_SECRET": secrets.token_hex(16), "BITRAIL_JOB_ID": "test"} | variables
        self.processes = [
            subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(**common, BITRAIL_RANK=rank))
            for rank in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def first_line(self, rank):
        """Waits for a line on a rank's stdout: the job runs."""
        return self.processes[rank].stdout.readline()

    def kill(self, rank):
        self.processes[rank].send_signal(signal.SIGKILL)

    def finish(self, within_s=TIMEOUT_S):
        """[(exit code, stdout, stderr)] by rank, once all ended."""
        end = time.monotonic() + within_s
        results = []
        for rank, process in enumerate(self.processes):
            out, err = process.communicate(timeout=max(0.1, end - time.monotonic()))
            print(f"rank {rank}: exit {process.returncode}\n{out}{err}", flush=True)
            results.append((process.returncode, out, err))
        return results


def children(pid):
    """Process ids of the direct children."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def require(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def main(cases):
    cases[sys.argv[2]]()
