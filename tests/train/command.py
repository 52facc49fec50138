#!/usr/bin/env python3
"""`bitrail train` as a process, alone and with several ranks, on a small model. See
tests/tools/support.py.
"""
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from support import TOOL, Ranks, environment, main, require, run  # noqa: E402

MODEL = ("--layers", 1, "--width", 32, "--heads", 2, "--seq", 32, "--eval", 2)
SMALL = (*MODEL, "--batch", 2)


def corpus(folder):
    """A file of a few words in random order: a text with something to learn, the same every time."""
    draw = random.Random(5)
    words = "the quick brown fox jumps over a lazy dog and runs into dark woods".split()
    path = pathlib.Path(folder, "words.txt")
    path.write_text(" ".join(draw.choice(words) for _ in range(12000)), encoding="ascii")
    return path


# Each configuration's phases in six steps at a ten-thousandth of its schedule.
EXAMPLES = {
    "bert_seq128_adam.json": ["full"] * 6,
    "bert_seq128_onebit_adam.json": ["full"] + ["compressed"] * 5,
    "bert_seq128_onebit_lamb.json": ["full"] + ["compressed"] * 5,
    # The second step's rate is 0, so nothing moves that had to be exchanged; from the fifth on every
    # other step is local.
    "bert_seq128_zero_one_adam.json": ["full", "local", "compressed", "compressed", "compressed", "local"],
    "squad_onebit_adam.json": ["full"] + ["compressed"] * 5,
}


def train(ranks, folder, *options, batch=True):
    """(exit code, stdout, stderr, step records, summary or None)"""
    path = pathlib.Path(folder, "steps.json")
    launch = (TOOL, "launch", "-n", ranks, "--") if ranks > 1 else ()
    small = SMALL if batch else MODEL
    code, out, err = run(*launch, TOOL, "train", *small, "--corpus", corpus(folder), "--json", path,
                         *options)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    summary = lines.pop()["summary"] if lines and "summary" in lines[-1] else None
    return code, out, err, lines, summary


def refusals():
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder, "binary")
        binary.write_bytes(bytes(range(256)) * 200)
        empty = pathlib.Path(folder, "empty")
        empty.touch()
        words = corpus(folder)
        for options, reason in (
                (("--corpus", "/no/such/file"), "/no/such/file"),
                (("--corpus", empty), "is empty"),
                (("--corpus", binary), "not text"),
                (("--corpus", folder), "is a folder"),
                (("--corpus", words, "--width", 30, "--heads", 4), "--width"),
                (("--corpus", words, "--steps", "many"), "--steps"),
                (("--corpus", words, "--steps", 0), "--steps"),
                (("--corpus", words, "--optimizer", "sgd"), "onebit-adam"),
                (("--corpus", words, "--lerning-rate", 1), "--lerning-rate"),
                (("--corpus", words, "--steps", 1, "--json", "/no/such/steps"), "/no/such/steps"),
                (("--corpus", words, "--steps", 1, "--plot", "/no/such/plot"), "/no/such/plot"),
                (("--corpus", words, "--compare", "adam,sgd"), "sgd"),
                (("--corpus", words, "--freeze-step", "soon"), "--freeze-step soon"),
                (("--corpus", words, "--deepspeed-config", "/no/such/ds"), "/no/such/ds"),
                (("--corpus", words, "--deepspeed-config", words), "is not JSON")):
            code, _, err = run(TOOL, "train", *options)
            require(code > 0, f"{options} is refused")
            require(reason in err, f"the text about {options} says {reason}")


def learns():
    """One rank gets well below the entropy of the letters."""
    with tempfile.TemporaryDirectory() as folder:
        code, _, _, steps, summary = train(1, folder, "--steps", 300)
    require(code == 0 and len(steps) == 300, "300 steps")
    require(summary["final_loss"] < summary["unigram_entropy"] - 0.3, "the model learned")
    require(summary["held_out_loss"] < summary["unigram_entropy"] - 0.3, "and generalises")
    require(all(step["wire_bytes"] == 0 for step in steps), "one rank sends nothing")


def repeats():
    """The same seed, the same losses; another seed, others."""
    with tempfile.TemporaryDirectory() as folder:
        first, again, other = (
            [step["loss"] for step in train(1, folder, "--steps", 5, "--seed", seed)[3]]
            for seed in (1, 1, 2))
    require(first == again and first != other, "losses follow from the seed")


def four_ranks():
    with tempfile.TemporaryDirectory() as folder:
        code, out, _, steps, summary = train(4, folder, "--optimizer", "onebit-adam", "--steps", 8,
                                             "--freeze-step", 3)
    require(code == 0, "four ranks train")
    require(all(line.startswith("[0]") for line in out.splitlines()), "only rank 0 prints")
    require([step["step"] for step in steps] == list(range(1, 9)), "one record a step")
    require([step["phase"] for step in steps] == ["full"] * 3 + ["compressed"] * 5,
            "three steps in full precision")
    for step in steps:
        require(abs(step["compute_ms"] + step["comm_ms"] - step["step_ms"]) < 1e-6, "times add up")
    full, compressed = steps[0]["wire_bytes"], steps[-1]["wire_bytes"]
    # A ring's 2 * 3/4 of the gradient; the small tensors' scales weigh much in a small model.
    require(0.99 < full / (4 * summary["parameters"] * 1.5) < 1.01, "full precision: 4 bytes a value")
    require(full / compressed > 20, "compressed: about 1 bit a value")
    require(summary["world_size"] == 4 and summary["compressed"]["steps"] == 5, "summary")


def accumulation():
    """Two micro-batches of a step are drawn one after the other, and their mean makes one step."""
    with tempfile.TemporaryDirectory() as folder:
        once = train(1, folder, "--steps", 8)[3]
        code, _, _, twice, summary = train(1, folder, "--steps", 4, "--accumulation", 2)
    require(code == 0 and len(twice) == 4 and summary["steps"] == 4, "four steps of two parts")
    # No step has been taken yet when the first two batches are seen.
    require(abs(twice[0]["loss"] - once[0]["loss"]) < 0.5, "losses are means, not sums")
    require(twice[1]["loss"] != once[1]["loss"], "other data")


def deepspeed():
    """A published configuration runs, cut down by the command line only."""
    examples = pathlib.Path(__file__).resolve().parents[2] / "examples" / "deepspeed"
    with tempfile.TemporaryDirectory() as folder:
        small = ("--steps", 6, "--scale-schedule", 0.0001, "--accumulation", 1, "--initial-scale-power", 8)
        for name, phases in EXAMPLES.items():
            code, out, _, steps, summary = train(2, folder, "--deepspeed-config", examples / name, *small)
            require(code == 0, f"{name} trains")
            require("train_batch_size" in out, "what is not followed is said")
            require([step["phase"] for step in steps] == phases, f"{name}: phases {phases}")
            require(summary["final_loss"] > 0, "a loss")
        # Without the command line's sizes the file's own must fit: 96 rows are no multiple of 3 x 5.
        code, _, err, _, _ = train(5, folder, "--deepspeed-config", examples / "squad_onebit_adam.json",
                                   batch=False)
        require(code != 0 and "train_batch_size 96" in err, "batch sizes that do not fit are refused")
        code, _, err, _, _ = train(2, folder, "--deepspeed-config", mpi(folder))
        require(code != 0 and "comm_backend_name mpi" in err and "mpirun" in err, "mpi wants MPI's ranks")


def mpi(folder):
    path = pathlib.Path(folder, "mpi.json")
    path.write_text(json.dumps({"train_batch_size": 4, "optimizer": {
        "type": "OneBitAdam", "params": {"comm_backend_name": "mpi"}}}), encoding="ascii")
    return path


def compare():
    """Runs of one job share seeds and data; a table, a picture, and records that tell them apart."""
    with tempfile.TemporaryDirectory() as folder:
        plot = pathlib.Path(folder, "loss.svg")
        code, out, _, lines, _ = train(2, folder, "--compare", "adam,onebit-adam,naive-onebit", "--steps",
                                       10, "--freeze-step", "30%", "--seeds", 2, "--plot", plot)
        require(code == 0, "three optimizers with two seeds")
        picture = plot.read_text(encoding="utf-8")
    rows = lines.pop()["comparison"]
    require([row["optimizer"] for row in rows] == ["adam", "onebit-adam", "naive-onebit"], "a row each")
    require(rows[0]["volume_ratio"] == 1 and rows[1]["volume_ratio"] > 2 < rows[2]["volume_ratio"], "volume")
    require(all(row["runs"] == 2 and row["held_out_loss_deviation"] > 0 for row in rows), "two seeds")
    steps = [line for line in lines if "step" in line]
    first = {(step["optimizer"], step["seed"]): step["loss"] for step in steps if step["step"] == 1}
    require(len(steps) == 60 and len(first) == 6, "60 records of 6 runs")
    for seed in (1, 2):
        require(len({first[row["optimizer"], seed] for row in rows}) == 1, "the same start and data")
    require([step["phase"] for step in steps if step["optimizer"] == "naive-onebit"] == ["compressed"] * 20,
            "the naive one compresses from the start")
    require("baseline" in out and "* adam" in out, "table and picture are shown")
    require(picture.count("<polyline") == 3 and picture.endswith("</svg>\n"), "the picture is complete")


def resume():
    """20 + 20 steps with the errors saved are 40 steps bit for bit, for every optimizer and precision."""
    for options in (("adam",), ("onebit-adam", "--precision", "fp16", "--clip", 1), ("zero-one-adam",
                    "--local-step-scaler", 5, "--local-step-clipper", 4), ("lamb", "--precision", "bf16"),
                    ("onebit-lamb", "--accumulation", 2)):
        with tempfile.TemporaryDirectory() as folder:
            save = pathlib.Path(folder, "checkpoint")
            common = ("--optimizer", *options, "--freeze-step", 12, "--no-lr-decay")
            whole = train(2, folder, *common, "--steps", 40)[3]
            code, _, _, first, _ = train(2, folder, *common, "--steps", 20, "--save", save, "--every", 10)
            require(code == 0 and [step["step"] for step in first] == list(range(1, 21)), "20 steps")
            code, out, _, second, _ = train(2, folder, *common, "--steps", 40, "--resume", save)
            require(code == 0 and "resumed after step 20" in out, "20 more")
            for key in ("loss", "lr", "phase", "loss_scale", "skipped"):
                require([step[key] for step in first + second] == [step[key] for step in whole],
                        f"{options}: {key} as without a stop")
            code, _, _, again, _ = train(2, folder, *common, "--steps", 40, "--resume", save, "--errors",
                                         "reset")
            require(code == 0, "DeepSpeed's rule works too")
            require(abs(again[-1]["loss"] / whole[-1]["loss"] - 1) < 0.05, "and ends nearby")
            code, _, err, _, _ = train(2, folder, *common, "--steps", 20, "--resume", save)
            require(code != 0 and "nothing is left" in err, "a finished run is not resumed")
            other = "lamb" if options[0] == "adam" else "adam"
            code, _, err, _, _ = train(2, folder, "--optimizer", other, "--steps", 40, "--resume", save)
            require(code == 1 and "is a checkpoint of" in err, "another optimizer's is refused")
    with tempfile.TemporaryDirectory() as folder:
        code, _, err, _, _ = train(2, folder, "--resume", pathlib.Path(folder, "none"))
        require(code != 0 and "none" in err, "a checkpoint that is not there is named")


def freeze_auto():
    with tempfile.TemporaryDirectory() as folder:
        code, out, _, steps, summary = train(2, folder, "--optimizer", "onebit-adam", "--steps", 120,
                                             "--beta2", 0.8, "--freeze-step", "auto")
    require(code == 0 and 15 <= summary["frozen_at"] < 120, "it freezes by itself, after 3 / (1 - beta2)")
    require(sum(step["phase"] == "full" for step in steps) == summary["frozen_at"], "and says when")
    require(f"frozen at the optimizer's step {summary['frozen_at']}" in out, "in words, too")


def overflow():
    """A loss scale far too large is halved until the gradient fits; the skipped steps change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, _, steps, summary = train(2, folder, "--optimizer", "onebit-adam", "--precision", "fp16",
                                             "--initial-scale-power", 30, "--hysteresis", 1, "--steps", 40)
    skipped = [step["skipped"] for step in steps]
    require(code == 0 and skipped[0] and not skipped[-1], "overflow first, then not")
    require(summary["skipped_steps"] == sum(skipped), "counted")
    require(steps[0]["loss_scale"] == 2 ** 30 > steps[-1]["loss_scale"], "the scale falls")
    require("skipped: overflow" in out, "said")
    require(steps[-1]["loss"] < steps[0]["loss"], "and it learns")


def mask():
    """Position rows without gradient stay where they are with the mask and fly away without."""
    moved = {}
    with tempfile.TemporaryDirectory() as folder:
        for option in ("--mask", "--no-mask"):
            code, _, _, _, summary = train(2, folder, "--optimizer", "onebit-adam", "--steps", 6,
                                           "--freeze-step", 3, option)
            require(code == 0, f"{option} trains")
            moved[option] = summary["unused_positions_moved"]
    require(moved["--mask"] == 0 and moved["--no-mask"] > 1, f"rows moved: {moved}")


def interrupt():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "steps.json")
        command = (TOOL, "launch", "-n", 2, "--", TOOL, "train", *SMALL, "--corpus", corpus(folder),
                   "--json", path, "--steps", 1000000)
        with subprocess.Popen([str(word) for word in command], env=environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            while "step 1/" not in job.stdout.readline():
                require(job.poll() is None, "the job starts")
            job.send_signal(signal.SIGINT)
            out, err = job.communicate(timeout=60)
        print(out, err)
        require(job.returncode != 0, "an interrupted job does not exit 0")
        require("interrupted after step" in err, "the text says what happened")
        steps = [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").splitlines()]
        require(steps == list(range(1, len(steps) + 1)) and steps, "what was done is on record")


def killed():
    with tempfile.TemporaryDirectory() as folder:
        with Ranks(3, TOOL, "train", *SMALL, "--corpus", corpus(folder), "--steps", 1000000,
                   BITRAIL_TIMEOUT_MS=20000) as ranks:
            while "step 1/" not in ranks.first_line(0):
                pass
            ranks.kill(1)
            results = ranks.finish()
    for rank in (0, 2):
        code, _, err = results[rank]
        require(code == 1, f"rank {rank} fails")
        require("rank 1" in err, f"rank {rank} names the lost rank")


if __name__ == "__main__":
    main(globals())
