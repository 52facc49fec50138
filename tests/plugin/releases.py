"""Which plugin tables releases of NCCL look for: releases.py NM FILE CACHE VERSION...

Takes the wheels nvidia-nccl-cu12==VERSION from PyPI (150 to 350 MB each; CACHE keeps what was found in them), and
checks that FILE serves the newest net table of each. Exit code 77 (skipped) where PyPI is not reached.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

NAME = re.compile(rb"nccl(?:Net|CollNet|Tuner|Env|Gin|Rma)Plugin_v\d+|ncclProfiler_v\d+")
PACKAGE = "nvidia-nccl-cu12"


def download(version, folder):
    """The wheel, or None with the reason printed."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
               "--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64", "--platform",
               "manylinux_2_18_x86_64", "--dest", folder, f"{PACKAGE}=={version}", "--retries", "1", "--timeout", "20"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    print(f"{PACKAGE}=={version}: {(done.stderr.strip().splitlines() or ['no wheel'])[-1]}")
    return None


def tables(version, cache):
    kept = pathlib.Path(cache, f"nccl-{version}.json")
    if kept.exists():
        return json.loads(kept.read_text(encoding="ascii"))
    with tempfile.TemporaryDirectory() as folder:
        wheel = download(version, folder)
        if wheel is None:
            return None
        with zipfile.ZipFile(wheel) as archive:
            library = next(name for name in archive.namelist() if name.endswith("libnccl.so.2"))
            found = sorted({name.decode() for name in NAME.findall(archive.read(library))})
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found), encoding="ascii")
    return found


def number(name):
    return int(name.rsplit("v", 1)[1])


def main():
    nm, file, cache, *versions = sys.argv[1:]
    text = subprocess.run([nm, "-D", "--defined-only", file], check=True, text=True, stdout=subprocess.PIPE).stdout
    served = {line.split()[-1] for line in text.splitlines() if line}
    for version in versions:
        found = tables(version, cache)
        if found is None:
            sys.exit(77)
        kinds = sorted({name.rsplit("_v", 1)[0] for name in found})
        by_kind = [(kind, sorted(number(name) for name in found if name.startswith(f"{kind}_"))) for kind in kinds]
        print(f"NCCL {version}: " + "; ".join(f"{kind} {', '.join(map(str, numbers))}" for kind, numbers in by_kind))
        nets = [name for name in found if name.startswith("ncclNetPlugin_")]
        newest = max(nets, key=number)
        if newest not in served:
            sys.exit(f"NCCL {version} prefers {newest}, which the plugin does not serve")


if __name__ == "__main__":
    main()
