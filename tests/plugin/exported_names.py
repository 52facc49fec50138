"""The plugin exports NCCL's tables and nothing else: exported_names.py NM FILE"""
import subprocess
import sys

EXPECTED = ({f"ncclNetPlugin_v{version}" for version in range(6, 13)} |
            {f"ncclCollNetPlugin_v{version}" for version in range(8, 12)})


def main():
    nm, file = sys.argv[1:]
    text = subprocess.run([nm, "-D", "--defined-only", file], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    names = {line.split()[-1] for line in text.splitlines() if line}
    if names != EXPECTED:
        sys.exit(f"missing {sorted(EXPECTED - names)}, too many {sorted(names - EXPECTED)}")
    kinds = {line.split()[-2] for line in text.splitlines() if line}
    if kinds - {"D", "R"}:
        sys.exit(f"tables have to be data, not {sorted(kinds)}")


if __name__ == "__main__":
    main()
