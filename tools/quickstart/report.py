"""What ./quickstart shows: the figures of both runs, and whether what is claimed holds."""
import statistics

# Claims: what has to hold for the comparison to mean something and for 1-bit Adam to be worth it.
LOSS_TOLERANCE = 0.02   # of Adam's final loss
ENTROPY_MARGIN = 0.3    # nat below the unigram entropy: both learned more than word frequencies
VOLUME_RATIO = 31
SPEEDUP = 3


def phase_figures(records, phase):
    """(median ms a step, mean bytes a step) of a phase."""
    members = [record for record in records if record["phase"] == phase]
    return (statistics.median(record["step_ms"] for record in members),
            statistics.fmean(record["wire_bytes"] for record in members))


def figures(adam, onebit, link_mbps):
    """Each run is (records of the steps, summary)."""
    adam_ms, adam_bytes = phase_figures(adam[0], "full")
    full_ms, full_bytes = phase_figures(onebit[0], "full")
    compressed_ms, compressed_bytes = phase_figures(onebit[0], "compressed")
    seconds = [sum(record["step_ms"] for record in records) / 1e3 for records, _ in (adam, onebit)]
    share = [statistics.median(record["comm_ms"] / record["step_ms"] for record in records)
             for records in (adam[0], [r for r in onebit[0] if r["phase"] == "compressed"])]
    return {
        "ranks": adam[1]["world_size"],
        "parameters": adam[1]["parameters"],
        "steps": len(adam[0]),
        "full_precision_steps": sum(record["phase"] == "full" for record in onebit[0]),
        "link_mbps": link_mbps,
        "unigram_entropy": adam[1]["unigram_entropy"],
        "adam_final_loss": adam[1]["final_loss"],
        "onebit_final_loss": onebit[1]["final_loss"],
        "adam_held_out_loss": adam[1]["held_out_loss"],
        "onebit_held_out_loss": onebit[1]["held_out_loss"],
        "adam_communication_share": share[0],
        "onebit_communication_share": share[1],
        "adam_step_ms": adam_ms,
        "onebit_full_step_ms": full_ms,
        "onebit_compressed_step_ms": compressed_ms,
        "adam_wire_bytes": adam_bytes,
        "onebit_full_wire_bytes": full_bytes,
        "onebit_compressed_wire_bytes": compressed_bytes,
        "adam_seconds": seconds[0],
        "onebit_seconds": seconds[1],
        "compressed_volume_ratio": adam_bytes / compressed_bytes,
        "speedup_end_to_end": seconds[0] / seconds[1],
        "speedup_compressed_phase": adam_ms / compressed_ms,
    }


def claims(f):
    """[(text, holds)]"""
    difference = abs(f["onebit_final_loss"] / f["adam_final_loss"] - 1)
    margin = f["unigram_entropy"] - max(f["adam_final_loss"], f["onebit_final_loss"])
    return [
        (f"final losses differ by {difference:.2%}, at most {LOSS_TOLERANCE:.0%}",
         difference <= LOSS_TOLERANCE),
        (f"both are {margin:.2f} nat or more below the unigram entropy, at least {ENTROPY_MARGIN}",
         margin >= ENTROPY_MARGIN),
        (f"compressed steps send {f['compressed_volume_ratio']:.1f} times less, at least {VOLUME_RATIO}",
         f["compressed_volume_ratio"] >= VOLUME_RATIO),
        (f"end to end {f['speedup_end_to_end']:.2f} times as fast, at least {SPEEDUP}",
         f["speedup_end_to_end"] >= SPEEDUP),
    ]


def table(f):
    """(text, whether all claims hold)"""
    def row(name, adam, full, compressed):
        return f"{name:<34} {adam:>12} {full:>16} {compressed:>16}"

    full_steps = f["full_precision_steps"]
    lines = [
        "",
        f"{f['ranks']} ranks, {f['parameters']:,} parameters, {f['steps']} steps, "
        f"{f['link_mbps']:.1f} Mbit/s a rank, unigram entropy {f['unigram_entropy']:.3f} nat",
        "",
        row("", "Adam", "1-bit Adam", "1-bit Adam"),
        row("", "", f"steps 1..{full_steps}", f"steps {full_steps + 1}.."),
        row("step time (ms)", f"{f['adam_step_ms']:.1f}", f"{f['onebit_full_step_ms']:.1f}",
            f"{f['onebit_compressed_step_ms']:.1f}"),
        row("share of communication", f"{f['adam_communication_share']:.0%}", "",
            f"{f['onebit_communication_share']:.0%}"),
        row("bytes on the wire a step and rank", f"{f['adam_wire_bytes']:,.0f}",
            f"{f['onebit_full_wire_bytes']:,.0f}", f"{f['onebit_compressed_wire_bytes']:,.0f}"),
        row("volume ratio", "1", f"{f['adam_wire_bytes'] / f['onebit_full_wire_bytes']:.2f}",
            f"{f['compressed_volume_ratio']:.2f}"),
        row("speed-up of a step", "1", f"{f['adam_step_ms'] / f['onebit_full_step_ms']:.2f}",
            f"{f['speedup_compressed_phase']:.2f}"),
        "",
        row("", "Adam", "1-bit Adam", ""),
        row("final loss (nat a token)", f"{f['adam_final_loss']:.4f}", f"{f['onebit_final_loss']:.4f}", ""),
        row("held-out loss", f"{f['adam_held_out_loss']:.4f}", f"{f['onebit_held_out_loss']:.4f}", ""),
        row("time of all steps (s)", f"{f['adam_seconds']:.1f}", f"{f['onebit_seconds']:.1f}", ""),
        row("speed-up end to end", "1", f"{f['speedup_end_to_end']:.2f}", ""),
        "",
    ]
    found = claims(f)
    lines += [f"{'ok     ' if holds else 'NOT met'}  {text}" for text, holds in found]
    return "\n".join(lines), all(holds for _, holds in found)
