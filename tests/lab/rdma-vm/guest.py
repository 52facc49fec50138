"""One virtual machine with the host's tree in it, read-only, and its life: boot, command, end."""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

BOOT_SECONDS = 150  # 10 on an idle machine
HERE = pathlib.Path(__file__).resolve().parent


class DidNotBoot(Exception):
    """The text has the end of the console's output."""


def job(command, directory, environment, devices, memlock):
    """The script that the guest sources."""
    lines = [f"devices={devices}", f"memlock={memlock}", f"directory={shlex.quote(str(directory))}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(lines + ["work() {", "  " + shlex.join(command), "}", ""])


class Guests:
    """One or two guests; `folder` is shared with them. close() ends them."""

    def __init__(self, image, initrd, options):
        self.image, self.initrd, self.options = image, initrd, options
        self.processes = []
        self.holder = tempfile.TemporaryDirectory(prefix="rdma-vm-")
        self.folder = pathlib.Path(self.holder.name)
        self.count = 2 if options.two else 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.kill()
        self.holder.cleanup()

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.processes = []

    def _command(self, number):
        share = "security_model=none,multidevs=remap"
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", self.options.cpus,
                   "-m", self.options.memory, "-nodefaults", "-display", "none", "-no-reboot",
                   "-serial", f"file:{self.folder}/console.{number}",
                   "-kernel", self.image, "-initrd", self.initrd,
                   "-append", f"console=ttyS0 quiet panic=-1 lab.guest={HERE}/guest lab.number={number}",
                   "-virtfs", f"local,path=/,mount_tag=host,readonly=on,{share}",
                   "-virtfs", f"local,path={self.folder},mount_tag=lab,{share}"]
        if self.options.two:
            path = f"{self.folder}/wire"
            ends = (f"server=on,addr.type=unix,addr.path={path}",
                    f"server=off,addr.type=unix,addr.path={path}")
            command += ["-netdev", f"stream,id=wire,{ends[number]}",
                        "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:88:00:0{number}"]
        return [str(word) for word in command]

    def console(self, number, most=3000):
        path = self.folder / f"console.{number}"
        return path.read_text(encoding="utf-8", errors="replace")[-most:] if path.exists() else ""

    def _boot(self):
        for number in range(self.count):
            self.processes.append(subprocess.Popen(self._command(number), stdin=subprocess.DEVNULL))
            end = time.monotonic() + 20
            while self.options.two and not (self.folder / "wire").exists() and time.monotonic() < end:
                time.sleep(0.05)  # the listening end first
        end = time.monotonic() + BOOT_SECONDS
        for number in range(self.count):
            while not (self.folder / f"up.{number}").exists():
                if time.monotonic() > end or self.processes[number].poll() is not None:
                    raise DidNotBoot(f"guest {number} did not come up:\n{self.console(number)}")
                time.sleep(0.05)

    def boot(self, commands, directory, environment):
        """Boots with one command for each guest; once more when that fails."""
        for attempt in (1, 2):
            for old in self.folder.iterdir():
                old.unlink()
            # Each guest takes its own line of work by its number.
            parts = [job(command, directory, environment, self.options.devices, self.options.memlock)
                     for command in commands]
            text = "".join(f'if [ "${{GUEST:-$number}}" = {number} ]; then\n{part}fi\n'
                           for number, part in enumerate(parts))
            (self.folder / "job").write_text(text, encoding="utf-8")
            try:
                self._boot()
                return
            except DidNotBoot as error:
                self.kill()
                if attempt == 2:
                    raise
                print(f"rdma-vm: {error}\nrdma-vm: once more", file=sys.stderr)

    def _copy_output(self, offsets):
        for number in range(self.count):
            path = self.folder / f"out.{number}"
            if not path.exists():
                continue
            with open(path, "rb") as file:
                file.seek(offsets[number])
                data = file.read()
            offsets[number] += len(data)
            sys.stdout.buffer.write(data)
        sys.stdout.flush()

    def wait(self, seconds):
        """Passes the output on until all commands ended; the first exit status that is not 0, 124 when time is up."""
        end = time.monotonic() + seconds
        offsets = [0] * self.count
        statuses = {}
        while len(statuses) < self.count:
            self._copy_output(offsets)
            for number in range(self.count):
                path = self.folder / f"status.{number}"
                if number not in statuses and path.exists():
                    statuses[number] = int(path.read_text(encoding="ascii"))
                elif number not in statuses and self.processes[number].poll() is not None and not path.exists():
                    print(f"rdma-vm: guest {number} ended by itself:\n{self.console(number)}", file=sys.stderr)
                    statuses[number] = 125
            if time.monotonic() > end:
                self._copy_output(offsets)
                print(f"rdma-vm: {seconds} s are over", file=sys.stderr)
                return 124
            time.sleep(0.05)
        self._copy_output(offsets)
        return next((status for status in statuses.values() if status != 0), 0)


def passed_on(names):
    """What of the caller's environment a guest gets: the settings of BitRail, UCX and GoogleTest, and `names`."""
    chosen = {name: value for name, value in os.environ.items() if name.startswith(("BITRAIL_", "UCX_", "GTEST_"))}
    for word in names:
        name, _, value = word.partition("=")
        chosen[name] = value
    return chosen
