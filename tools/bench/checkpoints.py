"""Checkpoints against writing and syncing the same bytes on the same disk."""
import json
import tempfile

from support import TOOL, median, output, progress

PARAMETERS = 110_000_000  # BERT-base


def measure(ranks, quick, directory):
    command = [TOOL, "bench", "checkpoint", "--parameters", PARAMETERS, "--rounds", 2 if quick else 7,
               directory]
    if ranks > 1:
        command = [TOOL, "launch", "-n", ranks, "--", *command]
    text = output(command)
    return json.loads(text[text.index("{"):])  # `launch` puts the rank in front


def checkpoints(rows, quick=False, directory=None):
    """Adds the rows. `directory`: on the disk to measure; by default a temporary one."""
    for ranks in (1,) if quick else (1, 2):
        progress(f"checkpoint of {PARAMETERS / 1e6:.0f} M parameters, {ranks} rank(s)")
        with tempfile.TemporaryDirectory(prefix="bitrail-bench-", dir=directory) as place:
            times = measure(ranks, quick, place)

        def ratio(mine, raw, times=times):
            return median(times[mine]) / median(times[raw])

        name = f"checkpoint of 110 M parameters, {ranks} rank{'s' if ranks > 1 else ''}"
        rows.add(f"{name}: over write and fsync", ratio("save", "write"), "x", "<= 1.3")
        rows.add(f"{name}: the same, replacing one", ratio("replace", "rewrite"), "x", "<= 1.3")
        rows.add(f"{name}: written", times["bytes"] / 1e9, "GB")
        rows.add(f"{name}: save", median(times["save"]), "s")
        rows.add(f"{name}: load, verified", median(times["load"]), "s")
