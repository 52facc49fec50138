"""The driver's ranks as a launcher starts them: launched.py DRIVER FILE mpi|lab RANKS

mpi: by Open MPI's mpirun on this host. lab: each in a network namespace of its own, over an unshaped link (root
only). Exit code 77 (skipped) where that cannot be had.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lab"))
from lab import Lab, why_not  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_S = 150
MIB = 6


def by_mpi(command, ranks):
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        print("mpirun is not installed (package openmpi-bin)")
        return 77
    env = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run([mpirun, "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *command], env=env,
                          stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False).returncode


def in_lab(command, ranks):
    reason = why_not()
    if reason:
        print(reason)
        return 77
    with Lab(ranks) as lab:
        return lab.run(command, timeout=LIMIT_S, env={"BITRAIL_TRANSPORT": "ucx"})


def main():
    driver, file, way, ranks = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for version in (6, 10, 12) if ranks == "2" else (12,):
            command = [driver, file, str(version), "launched", f"{folder}/board.{version}", str(MIB)]
            status = {"mpi": by_mpi, "lab": in_lab}[way](command, int(ranks))
            if status != 0:
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
