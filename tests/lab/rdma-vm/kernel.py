"""The guest's kernel and initial ram disk, made once and kept in a cache folder.

The kernel is Debian's stock one, because that has rdma_rxe (the `cloud` flavour does not). Its package
is downloaded and unpacked, never installed.
"""
import fcntl
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

# In this order; each brings what it depends on. rdma_rxe asks the kernel for crc32 by name.
MODULES = ("virtio_pci virtio_net 9pnet_virtio 9p overlay ib_uverbs rdma_ucm crc32_generic rdma_rxe veth bridge "
           "sch_netem sch_tbf").split()
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio", "depmod": "kmod",
         "dpkg-deb": "dpkg", "apt-get": "apt", "rdma": "iproute2"}
INIT = pathlib.Path(__file__).with_name("init")


class Missing(Exception):
    """The virtual machine cannot be had here; the text says why."""


def _output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=300, **options)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def check_tools():
    for tool, package in TOOLS.items():
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            raise Missing(f"{tool} is not installed (package {package})")


def _package():
    """Name of the package that linux-image-amd64 stands for: it has the release in its name."""
    found = re.search(r"Depends: (linux-image-\S*-amd64)", _output("apt-cache", "depends", "linux-image-amd64"))
    if not found:
        raise Missing("apt-cache knows no kernel package (run apt-get update)")
    return found[1]


def _unpack(cache):
    package = _package()
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        _output("apt-get", "download", package, cwd=folder)
        deb = next(pathlib.Path(folder).glob("*.deb"))
        root = pathlib.Path(folder, "root")
        _output("dpkg-deb", "-x", deb, root)
        release = next((root / "lib/modules").iterdir()).name
        _output("depmod", "-b", root, release)
        root.rename(cache / release)
    return release


def _initrd(root, release, out):
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        tree = pathlib.Path(folder)
        for name in ("bin", "proc", "sys", "dev", "modules", "newroot"):
            (tree / name).mkdir()
        shutil.copy(shutil.which("busybox"), tree / "bin")
        shutil.copy(INIT, tree / "init")
        (tree / "init").chmod(0o755)
        order = []
        for module in MODULES:
            shown = _output("modprobe", "-d", root, "-S", release, "--show-depends", module)
            for line in shown.splitlines():
                path = line.split()[1] if line.startswith("insmod") else None
                if path and path not in order:
                    order.append(path)
                    shutil.copy(path, tree / "modules")
        (tree / "modules/order").write_text("".join(f"{os.path.basename(path)}\n" for path in order),
                                            encoding="ascii")
        names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
        archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=tree,
                                 stdout=subprocess.PIPE, check=True).stdout
        made = tree / "archive"
        made.write_bytes(gzip.compress(archive, 1))
        made.rename(out)


def kernel(cache):
    """(kernel image, initial ram disk); makes what `cache` has not yet."""
    check_tools()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    cache = pathlib.Path(cache).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        images = sorted(cache.glob("*/boot/vmlinuz-*"))
        release = images[-1].name.removeprefix("vmlinuz-") if images else _unpack(cache)
        initrd = cache / f"initrd-{release}"
        newest = max(path.stat().st_mtime for path in (INIT, pathlib.Path(__file__)))
        if not initrd.exists() or initrd.stat().st_mtime < newest:
            _initrd(cache / release, release, initrd)
    return cache / release / "boot" / f"vmlinuz-{release}", initrd
