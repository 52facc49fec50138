"""An optimizer's step in one process: its speed, and its memory."""
import importlib.util
import time

from support import bench, median, progress

ELEMENTS = 64 << 20
RANKS = 4
STATE = {"onebit-adam": 12 + 4 / RANKS, "zero-one-adam": 16 + 4 / RANKS, "onebit-lamb": 16 + 4 / RANKS}


def step(rows, quick=False):
    progress("1-bit Adam's step over 64 Mi float32")
    times = bench(1, "step", "--elements", ELEMENTS, "--rounds", 7 if quick else 21)
    seconds, copy = median(times["step"]), median(times["copy"])
    rows.add("1-bit Adam step, 64 Mi float32: traffic over memcpy's", times["bytes"] / seconds / (8 / copy),
             "x", ">= 0.8")
    rows.add("the same: time", seconds * 1e3, "ms")


def torch_seconds(torch):
    """The same step in torch operations, one thread, as DeepSpeed writes it."""
    torch.set_num_threads(1)
    gradient, m, params, worker, server = (torch.randn(ELEMENTS) for _ in range(5))
    v = torch.full((ELEMENTS,), 0.25)
    powers = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)

    def compressed(values, error):
        values = values.add(error)
        scale = torch.norm(values) / ELEMENTS ** 0.5
        error.copy_(values - scale * values.sign().add_(1).bool().float().add_(-0.5).mul_(2.0))
        bits = (values.view(-1, 8) >= 0).to(torch.uint8).mul(powers).sum(1, dtype=torch.uint8)
        signs = bits.unsqueeze(1).bitwise_and(powers).ne(0).float().mul_(2).sub_(1)
        return signs.view(-1).mul_(scale)

    start = time.monotonic()
    m.mul_(0.9).add_(gradient, alpha=0.1)
    m.copy_(compressed(compressed(m, worker), server))
    update = m / (v.sqrt() + 1e-8) + 0.01 * params
    params.sub_(1e-4 * update)
    return time.monotonic() - start


def torch_step(rows, quick=False):
    if importlib.util.find_spec("torch") is None:
        progress("torch is not installed: its step is left out")
        return
    import torch  # pylint: disable=import-outside-toplevel
    progress("1-bit Adam's step in torch operations")
    theirs = median([torch_seconds(torch) for _ in range(1 if quick else 3)])
    ours = median(bench(1, "step", "--elements", ELEMENTS, "--rounds", 5)["step"])
    rows.add("1-bit Adam step, 64 Mi float32: speed over torch's", theirs / ours, "x", ">= 10")


def memory(rows, quick=False):
    parameters = 16 << 20 if quick else 64 << 20
    for name, state in STATE.items():
        progress(f"{name}: memory of {parameters >> 20} Mi parameters, {RANKS} ranks")
        found = bench(RANKS, "memory", name, "--parameters", parameters)
        # 3 % for padding and the pages around.
        rows.add(f"{name}, {RANKS} ranks: state, bytes a parameter", found["state"] / parameters, "B",
                 f"<= {state * 1.03:.2f}")
        rows.add(f"{name}, {RANKS} ranks: peak above the state",
                 (found["peak"] - found["state"]) / parameters, "B", "<= 1")
        rows.add(f"{name}, {RANKS} ranks: peak", found["peak"] / parameters, "B",
                 f"<= {state * 1.03 + 1:.2f}")
