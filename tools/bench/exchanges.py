"""One exchange for all tensors against a call for each, and the bytes of a call."""
from support import bench, median, progress

RANKS = 4


def bert(layers=12, hidden=768, vocabulary=30522, positions=512):
    """Elements of each tensor of BERT with its pooler: base by default, 109.5 M."""
    norm = [hidden, hidden]
    square = [hidden * hidden, hidden]
    layer = square * 4 + norm + [4 * hidden * hidden, 4 * hidden] + [4 * hidden * hidden, hidden] + norm
    return [vocabulary * hidden, positions * hidden, 2 * hidden, *norm, *layer * layers, *square]


def measure(counts, rounds, delay_us):
    variables = {"BITRAIL_LINK_US": delay_us} if delay_us else {}
    return bench(RANKS, "exchange", "--rounds", rounds, ",".join(map(str, counts)), **variables)


def gain(times):
    return median(theirs / ours for theirs, ours in zip(times["separate"]["seconds"],
                                                        times["one"]["seconds"]))


def padded(count):
    return -(-count // (RANKS * 8)) * RANKS * 8


def formula(counts):
    """Bytes that a rank sends in one call with these segments: signs, and a scale to and from all."""
    return sum(2 * (RANKS - 1) * (padded(count) / (8 * RANKS) + 4) for count in counts)


def exchanges(rows, quick=False):
    small = [2500] * 400
    progress("400 tensors of 2,500 floats")
    times = measure(small, 15 if quick else 51, 100)
    rows.add("400 tensors of 2,500, 100 us: one exchange over separate", gain(times), "x", ">= 10")
    for name in ("one", "separate"):
        rows.add(f"the same, {name}: messages a rank", times[name]["messages"], "")
    # A flag with each of the two messages of scales tells whether all was finite: 8 (W-1) more.
    rows.add("the same, one: bytes over 2(W-1)(P/8W+4)", times["one"]["bytes"] / formula(small), "x",
             "<= 1.01")
    rows.add("the same, one: bytes beyond it and flags",
             abs(times["one"]["bytes"] - formula(small) - 8 * (RANKS - 1)), "B", "<= 0")
    model = bert(layers=2, vocabulary=8192) if quick else bert()
    name = f"BERT of {sum(model) / 1e6:.1f} M"
    for delay in (0, 100):
        progress(f"{name} parameters, {len(model)} tensors, link delay {delay} us")
        times = measure(model, 11 if quick else 7, delay)
        rows.add(f"{name}, {delay} us: one exchange over separate", gain(times), "x", ">= 1")
        rows.add("the same, one: bytes over 2(W-1)(P/8W+4)", times["one"]["bytes"] / formula(model), "x",
                 "<= 1.01")
