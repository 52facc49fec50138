"""The real NCCL takes its variables through the env plugin: env_real.py FILE

ncclGetUniqueId loads it on a machine without a GPU (NCCL 2.28.9 and later). Exit code 77 (skipped) without such
a library.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from real import libraries

START = """
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
sys.exit(nccl.ncclGetUniqueId(ctypes.create_string_buffer(128)))
"""


def start(library, plugin, lines, folder, **variables):
    """(NCCL's result, its log and what else was written)"""
    conf = pathlib.Path(folder, "bitrail.conf")
    conf.write_text("\n".join(lines) + "\n", encoding="ascii")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "BITRAIL_"))}
    # Found by its short name, as a user writes it. NCCL_DEBUG is read before any plugin is.
    env = inherited | {"NCCL_ENV_PLUGIN": "bitrail", "LD_LIBRARY_PATH": os.path.dirname(plugin), "NCCL_DEBUG": "INFO",
                       "BITRAIL_CONFIG": str(conf)} | variables
    done = subprocess.run([sys.executable, "-c", START, library], env=env, text=True, check=False, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def require(good, what, code, text):
    if not good:
        sys.exit(f"{what}: code {code}\n{text}")


def main():
    plugin = sys.argv[1]
    wanted = [path for path in libraries() if b"ncclEnvPlugin_v1" in pathlib.Path(path).read_bytes()]
    if not wanted:
        print("no libnccl.so.2 that knows env plugins on this machine (2.28.9 comes with the CUDA toolkit)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        code, text = start(wanted[0], plugin, ["BITRAIL_TIMEOUT_MS=9000", "NCCL_SOCKET_IFNAME=lo"], folder)
        require("Using BitRail (v1)" in text, "NCCL does not name the plugin", code, text)
        require(code == 0 and "Using lo:" in text, "NCCL took nothing from the file", code, text)
        code, text = start(wanted[0], plugin, ["NCCL_SOCKET_IFNAME=nosuch0"], folder, NCCL_SOCKET_IFNAME="lo")
        require(code == 0 and "Using lo:" in text, "the environment does not win", code, text)
        code, text = start(wanted[0], plugin, ["NCCL_SOCKET_IFNAME=lo", "this is no line"], folder)
        require(code == 0 and "bitrail.conf:2" in text, "a bad file is told, and NCCL goes on", code, text)
    print(f"{wanted[0]} takes its variables through the plugin")


if __name__ == "__main__":
    main()
