"""Traffic of whole runs: the published schedules, replayed by the optimizers themselves."""
from support import bench, progress

RANKS = 2
BITS = 16  # of a gradient that is not compressed

# Name, optimizer, steps, freeze step, published volume ratio to Adam's in float16. Where a ratio belongs to
# a share w of warm-up, that is 1/(w + (1-w)/16).
RUNS = [
    ("1-bit Adam, SQuAD (w 0.25)", "onebit-adam", 1600, 400, 3.37),
    ("1-bit Adam, BERT-Large 125k", "onebit-adam", 125000, 23000, 4.26),
    ("1-bit LAMB, w 0.165", "onebit-lamb", 12500, 2063, 4.6),
    ("0/1 Adam, BERT-Large 125k", "zero-one-adam", 125000, 12500, 27.1),
    ("0/1 Adam, BERT-Base 118k", "zero-one-adam", 118000, 12500, 25.9),
    ("0/1 Adam, BERT-Large 152k", "zero-one-adam", 152000, 12500, 31.7),
]


def bits(counts):
    steps = counts["full"] + counts["onebit"] + counts["skipped"]
    return (BITS * counts["full"] + counts["onebit"]) / steps


def volumes(rows, quick=False):
    for name, optimizer, steps, freeze, published in RUNS[:4] if quick else RUNS:
        progress(f"{name}: {steps} steps")
        counts = bench(RANKS, "volume", optimizer, "--steps", steps, "--freeze-step", freeze)
        ratio = BITS / bits(counts)
        rows.add(f"{name}: volume ratio to Adam's", ratio, "x")
        rows.add(f"the same: off the published {published}", abs(ratio / published - 1) * 100, "%", "<= 1")
        if optimizer == "zero-one-adam" and steps == 125000:
            # Published: 153 exchanges in full precision, 71,342 in 1 bit, 53,505 steps without.
            rows.add("the same: exchanges off the published 71,495",
                     abs((counts["full"] + counts["onebit"]) / 71495 - 1) * 100, "%", "<= 1")
