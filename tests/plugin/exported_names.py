"""A plugin exports NCCL's tables and nothing else: exported_names.py NM FILE [NAME...]"""
import subprocess
import sys

EXPECTED = ({f"ncclNetPlugin_v{version}" for version in range(6, 13)} |
            {f"ncclCollNetPlugin_v{version}" for version in range(8, 12)} |
            {f"ncclTunerPlugin_v{version}" for version in range(2, 7)})


def main():
    nm, file, *names = sys.argv[1:]
    expected = set(names) or EXPECTED
    text = subprocess.run([nm, "-D", "--defined-only", file], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found = {line.split()[-1] for line in text.splitlines() if line}
    if found != expected:
        sys.exit(f"missing {sorted(expected - found)}, too many {sorted(found - expected)}")
    kinds = {line.split()[-2] for line in text.splitlines() if line}
    if kinds - {"D", "R"}:
        sys.exit(f"tables have to be data, not {sorted(kinds)}")


if __name__ == "__main__":
    main()
