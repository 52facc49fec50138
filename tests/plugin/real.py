"""The real NCCL beside the plugin, as far as that goes without a GPU: real.py NM FILE

The library stops at the CUDA driver before it loads a net plugin. What can be seen: which tables it
looks for, and that it starts with the plugin chosen. Exit code 77 (skipped) without NCCL.
"""
import ctypes
import glob
import os
import re
import subprocess
import sys

PLACES = ["/usr/local/cuda*/lib*/libnccl.so.2", "/usr/lib/*/libnccl.so.2", "/opt/*/lib*/libnccl.so.2"]


def libraries():
    return [path for place in PLACES for path in sorted(glob.glob(place))]


def main():
    nm, file = sys.argv[1:]
    found = libraries()
    if not found:
        print("no libnccl.so.2 on this machine (it comes with the CUDA toolkit)")
        sys.exit(77)
    with open(found[0], "rb") as library:
        content = library.read()
    wanted = set(re.findall(rb"ncclNetPlugin_v\d+", content))
    text = subprocess.run([nm, "-D", "--defined-only", file], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    served = {line.split()[-1].encode() for line in text.splitlines() if line}
    if not wanted & served:
        sys.exit(f"{found[0]} looks for {sorted(wanted)}, the plugin serves {sorted(served)}")
    newest = max(wanted, key=lambda name: int(name.rsplit(b"v", 1)[1]))
    if newest not in served:
        sys.exit(f"{found[0]} prefers {newest.decode()}, which the plugin does not serve")
    # The tuner is looked for in the net plugin's file too, the newest table first.
    tuners = set(re.findall(rb"ncclTunerPlugin_v\d+", content))
    if not tuners or max(tuners, key=lambda name: int(name.rsplit(b"v", 1)[1])) not in served:
        sys.exit(f"{found[0]} looks for {sorted(tuners)}, the plugin serves {sorted(served)}")
    os.environ["NCCL_NET_PLUGIN"] = file
    nccl = ctypes.CDLL(found[0])
    version, unique = ctypes.c_int(), ctypes.create_string_buffer(128)
    if nccl.ncclGetVersion(ctypes.byref(version)) != 0 or nccl.ncclGetUniqueId(unique) != 0:
        sys.exit("NCCL does not start")
    print(f"{found[0]}, version {version.value}, takes {newest.decode()}, tuners {len(tuners & served)} of {len(tuners)}")


if __name__ == "__main__":
    main()
