#!/usr/bin/env python3
"""Sums up test runs: 'N passed, N failed, N skipped', counting GoogleTest cases.

Reads what `meson test` left in each build directory: meson-logs/testlog.json has the verdict and the
output of each test program. A program that speaks neither GoogleTest nor TAP counts as one; a program that
failed although all its cases passed (a sanitizer's report at exit, say) counts as one failure. Failures are
listed with the last of what they said.

Lints and other steps come in by --step NAME=pass|fail|skip:REASON.
With --strict a skip that the --allowed file does not name makes the exit code 1.
"""
import argparse
import fnmatch
import json
import pathlib
import re
import sys

OUTCOMES = {"OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}
FAILED = {"FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"}


def gtest_cases(output):
    """[(case name, 'pass'|'fail'|'skip', what it said)] from what a GoogleTest program printed."""
    cases, said = [], []
    for line in output.splitlines():
        ended = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] (\S+\.[^\s,]+).* \(\d+ ms\)$", line)
        if ended:
            # Before a skip stand the place and the reason.
            reason = " ".join(said[1:]) if ended[1] == "SKIPPED" else "\n".join(said)
            cases.append((ended[2], OUTCOMES[ended[1]], reason))
        said = [] if ended or line.startswith("[ RUN") else said + [line.strip()]
    return cases


def tap_cases(output):
    """The same from TAP, where what a test said follows it as comments."""
    if not re.search(r"^1\.\.\d+", output, re.MULTILINE):
        return []
    cases = []
    for line in output.splitlines():
        ended = re.match(r"(not )?ok \d+ - (\S+)(?: # SKIP (.*))?", line)
        if ended:
            outcome = "fail" if ended[1] else "skip" if ended[3] is not None else "pass"
            cases.append((ended[2], outcome, ended[3] or ""))
        elif line.startswith("# ") and cases and cases[-1][1] == "fail":
            name, outcome, said = cases[-1]
            cases[-1] = (name, outcome, f"{said}\n{line[2:]}".strip())
    return cases


def read_build(build):
    """[(name, outcome, reason or what a failure said)] of one build directory's last run."""
    log = pathlib.Path(build) / "meson-logs" / "testlog.json"
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        # The log says "name" or "project:suite / name".
        label = f"{pathlib.Path(build).name}: {test['name'].split(' / ', 1)[-1]}"
        output = test.get("stdout") or ""
        cases = gtest_cases(output) or tap_cases(output)
        found += [(f"{label}: {case}", outcome, reason) for case, outcome, reason in cases]
        failed = test["result"] in FAILED
        if failed and not any(outcome == "fail" for _, outcome, _ in cases):
            said = f"{test['result'].lower()}\n{output}\n{test.get('stderr') or ''}"
            found.append((label, "fail", said))
        elif not cases and not failed:
            skipped = test["result"] == "SKIP"
            reason = output.strip().splitlines()[-1:] if skipped else []
            found.append((label, "skip" if skipped else "pass", "".join(reason)))
    return found


def last_words(said, lines=12, most=1200):
    """The end of what a failure said, indented."""
    kept = [line for line in said.splitlines() if line.strip()][-lines:]
    return "".join(f"    {line}\n" for line in "\n".join(kept)[-most:].splitlines())


def read_allowed(path):
    """[pattern] of lines 'PATTERN  # reason'; the reason is obligatory."""
    patterns = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" # ")
        if not reason.strip():
            sys.exit(f"{path}:{number}: a pattern needs ' # ' and a reason")
        patterns.append(pattern.strip())
    return patterns


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="*", help="build directories")
    parser.add_argument("--allowed", type=pathlib.Path, help="file of skips that are allowed")
    parser.add_argument("--strict", action="store_true", help="other skips fail")
    parser.add_argument("--step", action="append", default=[], metavar="NAME=OUTCOME[:REASON]")
    options = parser.parse_args()

    results = []
    for step in options.step:
        name, _, outcome = step.partition("=")
        outcome, _, reason = outcome.partition(":")
        results.append((name, outcome, reason))
    for build in options.builds:
        results += read_build(build)
    allowed = read_allowed(options.allowed) if options.allowed else []

    count = {"pass": 0, "fail": 0, "skip": 0}
    surprising = 0
    for name, outcome, reason in results:
        count[outcome] += 1
        if outcome == "fail":
            print(f"FAILED   {name}\n{last_words(reason)}", end="")
        elif outcome == "skip":
            known = any(fnmatch.fnmatch(name, pattern) for pattern in allowed)
            surprising += not known
            print(f"skipped  {name}: {reason}{'' if known else '  [not in allowed-skips]'}")
    if options.strict and surprising:
        print(f"{surprising} skips that {options.allowed} does not name: the machine has to have it all")
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped", flush=True)
    return 1 if count["fail"] or not count["pass"] or (options.strict and surprising) else 0


if __name__ == "__main__":
    sys.exit(main())
