#!/usr/bin/env python3
"""Installs into a temporary folder, then builds and runs programs that know only pkg-config.

usage: pkgconfig.py BUILD_DIR PREFIX CC CXX PROGRAM.c PROGRAM.cc
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def run(command, **options):
    print("+", " ".join(map(str, command)), flush=True)
    return subprocess.run(command, check=True, text=True, **options)


def main():
    build, prefix, cc, cxx, c_source, cxx_source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder])
        root = pathlib.Path(folder + prefix)
        [pc] = root.rglob("bitrail.pc")
        environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
        query = ["pkg-config", f"--define-variable=prefix={root}", "--cflags", "--libs", "bitrail"]
        flags = run(query, env=environment, stdout=subprocess.PIPE).stdout.split()
        [library] = root.rglob("libbitrail.so")
        environment["LD_LIBRARY_PATH"] = str(library.parent)
        for compiler, standard, source in ((cc, "c11", c_source), (cxx, "c++20", cxx_source)):
            program = pathlib.Path(folder, "program")
            run([*compiler.split(), f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", source, "-o",
                 program, *flags])
            run([program], env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
