#!/usr/bin/env python3
"""Every function that bitrail.h declares is exported, and nothing else.

usage: exported_names.py NM LIBRARY HEADER
"""
import re
import subprocess
import sys


def main():
    nm, library, header = sys.argv[1:]
    text = open(header, encoding="utf-8").read()
    declared = set(re.findall(r"BITRAIL_API[^;(]*?\b(bitrail_\w+)\s*\(", text))
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    exported = {line.split()[-1] for line in listing.splitlines() if line.strip()}
    missing, extra = sorted(declared - exported), sorted(exported - declared)
    print(f"{len(declared)} functions declared, {len(exported)} names exported")
    for name in missing:
        print(f"declared but not exported: {name}")
    for name in extra:
        print(f"exported but not declared: {name}")
    return 1 if missing or extra or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
