"""What the benchmark scripts share: rows with a bar, the table, the JSON file, running programs."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
TOOL = BUILD / "tools" / "bitrail"

PERF_LIMIT_S = 120

median = statistics.median


class Rows:
    """The result: name, value, unit, bar, ok. A figure has no bar, or one it has to reach ('>= x') or
    not to exceed ('<= x')."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, bar=""):
        ok, limit = True, None
        if bar:
            relation, limit = bar.split()[0], float(bar.split()[1])
            ok = value >= limit if relation == ">=" else value <= limit
        self.rows.append({"name": name, "value": value, "unit": unit, "bar": limit, "ok": ok})
        print(f"{name:<62} {value:>9.3f} {unit:<5} {bar:<8} {'ok' if ok else 'NOT MET'}", flush=True)

    @staticmethod
    def header():
        print(f"{'name':<62} {'value':>9} {'':<5} {'bar':<8} ok", flush=True)

    def finish(self, path):
        """Writes the JSON file if one is wanted; the exit code."""
        if path:
            pathlib.Path(path).write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")
        return 0 if self.rows and all(row["ok"] for row in self.rows) else 1


def progress(text):
    print(text, file=sys.stderr, flush=True)


def environment(**variables):
    """The caller's environment without what a launcher or BITRAIL_ would add, plus `variables`."""
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith(("BITRAIL_", "OMPI_", "PMI", "PMIX_"))}
    inherited.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return inherited | {name: str(value) for name, value in variables.items()}


def output(command, **variables):
    """stdout of a program that has to succeed."""
    done = subprocess.run([str(word) for word in command], env=environment(**variables), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def bench(ranks, *words, **variables):
    """The JSON object that `bitrail bench` prints, run by so many ranks."""
    command = [TOOL, "bench", *words]
    if ranks > 1:
        command = [TOOL, "launch", "-n", ranks, "--", *command]
    text = output(command, **variables)
    return json.loads(text[text.index("{"):])  # `launch` puts the rank in front


def perf_bw(transport, size, messages, window, **variables):
    """Messages a second of `bitrail perf bw` between two ranks of this host, `window` of them in flight."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [TOOL, "launch", "-n", 2, "--", TOOL, "perf", "bw", "--transport", transport, "-b", size, "-e", size,
                   "-n", messages, "--window", window, "-c", 0, "--json", file.name]
        done = subprocess.run([str(word) for word in command], env=environment(**variables), text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PERF_LIMIT_S)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}{done.stderr}")
        return json.load(file)[0]["message_rate_mpps"] * 1e6
