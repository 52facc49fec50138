#!/usr/bin/env python3
"""Builds a project that takes BitRail as a Meson subproject, and runs its program.

usage: subproject.py SOURCE_DIR PROGRAM.cc
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = """project('outside', 'cpp', default_options: ['cpp_std=c++20'])
bitrail = dependency('bitrail', fallback: 'bitrail',
  default_options: ['tools=disabled', 'train=disabled', 'tests=disabled'])
executable('outside', 'program.cc', dependencies: bitrail)
"""


def main():
    source, program = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        outside = pathlib.Path(folder)
        (outside / "subprojects").mkdir()
        (outside / "subprojects" / "bitrail").symlink_to(source)
        (outside / "meson.build").write_text(PROJECT)
        shutil.copy(program, outside / "program.cc")
        build = outside / "build"
        subprocess.run(["meson", "setup", build, outside, "--wrap-mode=forcefallback"], check=True)
        subprocess.run(["ninja", "-C", build, "outside"], check=True)
        subprocess.run([build / "outside"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
