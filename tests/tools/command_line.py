#!/usr/bin/env python3
"""The `bitrail` tool by itself: help, mistakes, `info`. See support.py."""
import json
import pathlib
import tempfile

from support import ARGUMENTS, TOOL, main, require, run


def commands():
    code, out, _ = run(TOOL, "--help")
    require(code == 0, "--help exits 0")
    listed = out.split("commands:")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.strip().splitlines()]


def help_everywhere():
    names = commands()
    require({"info", "perf", "launch"} <= set(names), f"commands are {names}")
    for name in names:
        code, out, _ = run(TOOL, name, "--help")
        require(code == 0 and len(out) > 100, f"bitrail {name} --help tells something")
        required = {"perf": ["allreduce"], "bench": ["kernels"]}.get(name, [])
        code, out, err = run(TOOL, name, *required, "--no-such-option")
        require(code not in (0, -6, -11), f"bitrail {name} refuses an unknown option")
        require("no-such-option" in out + err, f"bitrail {name} names the unknown option")


def unknown_command():
    code, _, err = run(TOOL, "lanch")
    require(code != 0 and "'launch'" in err, "a mistyped command gets a suggestion")
    code, _, err = run(TOOL)
    require(code != 0 and "usage" in err, "no command: usage")


def info():
    code, out, _ = run(TOOL, "info", BITRAIL_TIMEOUT_MS=1234, BITRAIL_SECRET="do-not-print-me")
    require(code == 0, "info exits 0")
    for word in ("UCX", "Highway", "Transports", "Launcher", "host"):
        require(word in out, f"info tells about {word}")
    [timeout] = [line for line in out.splitlines() if line.split()[:1] == ["BITRAIL_TIMEOUT_MS"]]
    require("1234" in timeout and "(environment)" in timeout, "info shows value and origin")
    [debug] = [line for line in out.splitlines() if line.split()[:1] == ["BITRAIL_DEBUG"]]
    require("(default)" in debug, "info shows defaults")
    require("do-not-print-me" not in out, "info does not print the secret")


def info_file():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("BITRAIL_LINK_MBPS=77\n")
        file.flush()
        code, out, _ = run(TOOL, "info", BITRAIL_CONFIG=file.name)
    [line] = [line for line in out.splitlines() if line.split()[:1] == ["BITRAIL_LINK_MBPS"]]
    require(code == 0 and "77" in line and "(file)" in line, "info shows the file's value")


def manual():
    code, out, _ = run(TOOL, "info", "--markdown")
    page = pathlib.Path(ARGUMENTS[0]).read_text(encoding="utf-8")
    require(code == 0 and out == page, "docs/variables.md is `bitrail info --markdown`'s output")


def bad_values():
    for name, value in (("BITRAIL_TIMEOUT_MS", "soon"), ("BITRAIL_TIMEOUT_MS", "-1"),
                        ("BITRAIL_LINK_MBPS", "1e99"), ("BITRAIL_TRANSPORT", "pigeon"),
                        ("BITRAIL_CONFIG", "/no/such/file"), ("BITRAIL_ALGO", "allreduce:nothing")):
        code, _, err = run(TOOL, "perf", "allreduce", "-e", "8", **{name: value})
        require(code > 0, f"{name}={value} is refused")
        require(name in err, f"the text about {name}={value} names the variable")


def unknown_variable():
    code, _, err = run(TOOL, "perf", "allreduce", "-e", "8", BITRAIL_TIMOUT_MS=5)
    require(code == 0, "an unknown variable does not stop anything")
    require("BITRAIL_TIMOUT_MS" in err and "BITRAIL_TIMEOUT_MS" in err, "nearest name is told")


def perf_json():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rows.json")
        code, out, _ = run(TOOL, "perf", "allreduce", "-b", "1K", "-e", "4K", "-f", "4", "-n", "3",
                           "--json", path)
        require(code == 0 and "# all correct" in out, "perf alone in the world")
        rows = json.loads(path.read_text())
        require([row["size"] for row in rows] == [1024, 4096], "a row for each size")
        require(all(row["out_of_place"]["wrong"] == 0 for row in rows), "checked")
    code, out, _ = run(TOOL, "perf", "allreduce", "-b", "4K", "-e", "4K", "-n", "3", "--phases")
    require(code == 0 and "phases: reduce-scatter" in out, "the halves of an allreduce are timed")
    code, _, err = run(TOOL, "perf", "allreduce", "-e", "8", "--json", "/no/such/folder/rows.json")
    require(code != 0 and "/no/such/folder" in err, "a file that cannot be written is an error")


main(globals())
