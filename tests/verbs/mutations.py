"""Every mistake in this list is one that a test has to catch.

Each takes a source file, makes one change in a copy, compiles the copy without optimisation, links
a test with it and expects that the test fails. A change whose text is not found is an error: the
list follows the code.

Usage: mutations.py BUILD SOURCE
"""

import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

VERBS = "runtime/transport/verbs/"
SUPPORT = "tests/support/"

# (what is wrong, file, test, text, text instead)
MUTATIONS = [
    ("a prefix where the whole name is asked for", VERBS + "select.cc", "select",
     "list.exact ? device == name.name : device", "device"),
    ("any port", VERBS + "select.cc", "select", "name.port == 0 || name.port == port", "true"),
    ("link-local addresses are chosen", VERBS + "gid.cc", "gid",
     "if (is_link_local(entry.gid))", "if (false)"),
    ("addresses of other containers are chosen", VERBS + "gid.cc", "gid",
     "if (entry.version == 0)", "if (false)"),
    ("the range is not looked at", VERBS + "gid.cc", "gid",
     "if (!contains(range, entry.gid))", "if (false)"),
    ("ports that are down are used", VERBS + "device.cc", "device",
     "port->attributes.state != IBV_PORT_ACTIVE", "false"),
    ("the GID is not read again", VERBS + "device.cc", "device",
     "if (status.ok()) status = read_address(options, port);\n  if (!status.ok())",
     "if (!status.ok())"),
    ("devices in the list's order", VERBS + "device.cc", "device",
     "std::sort(keyed.begin(), keyed.end());", ""),
    ("no fork_init", VERBS + "fork.cc", "device", "table().fork_init()", "0"),
    ("fork_init each time", VERBS + "fork.cc", "device",
     "if (done && generation == table_generation()) return;", ""),
    ("registrations from the byte on", VERBS + "registrations.cc", "memory",
     "start = address & ~(kPage - 1)", "start = address"),
    ("registrations to the byte", VERBS + "registrations.cc", "memory",
     "end = (address + bytes + kPage - 1) & ~(kPage - 1)", "end = address + bytes"),
    ("the end of a found registration is not looked at", VERBS + "registrations.cc", "memory",
     "return entry->end >= end ? entry : nullptr;", "return entry;"),
    ("stale registrations are kept", VERBS + "registrations.cc", "memory",
     "if (!entry->keep || !entry->findable)", "if (!entry->findable)"),
    ("a promise for a part keeps the whole", VERBS + "registrations.cc", "memory",
     "keep == Keep::unused && entry->start == start && entry->end == end",
     "keep == Keep::unused"),
    ("the most recently used goes first", VERBS + "registrations.cc", "memory",
     "unused_.insert(unused_.end(), entry)", "unused_.insert(unused_.begin(), entry)"),
    ("no bound", VERBS + "registrations.cc", "memory",
     "while (unused_.size() > bound_) drop(unused_.front());", ""),
    ("unused ones do not make room", VERBS + "registrations.cc", "memory",
     "errno == ENOMEM && evict_half()", "false"),
    ("forgotten ones are served", VERBS + "registrations.cc", "memory",
     "entry->findable = false;", ""),
    ("memory stays registered", VERBS + "memory.cc", "memory",
     "part.port->registrations->release(part.mr);", ""),
    ("events are not acknowledged", VERBS + "events.cc", "events",
     "table().ack_async_event(&event);", ""),
    ("events of the card's other port", VERBS + "events.cc", "events",
     "event.element.port_num == port->number", "true"),
    ("a port never comes back", VERBS + "events.cc", "events",
     "port->down.exchange(false)", "port->down.load()"),
    ("nobody is woken", VERBS + "events.cc", "events",
     "if (concerned) ring(watched->wake_fd);", ""),
    ("the sender does not learn what was taken", VERBS + "sender.cc", "random",
     "if (note->unmatched) unmatched_.pop(note->tag);", ""),
    ("the receiver does not learn which clears were seen", VERBS + "receiver.cc", "random",
     "if (slot != nullptr && slot->listed) take_posted(slot->tag);", ""),
    ("a clear overtakes an older receive", VERBS + "receiver.cc", "random",
     "if (small_posted_ == 0) return true;", "return true;"),
    ("the first part completes a message", VERBS + "receiver.cc", "random",
     "if (slot->arrived == slot->wanted) fill", "if (slot->arrived != 0) fill"),
    ("a port that went down is not noticed", VERBS + "worker.cc", "connection",
     "if (station.lost || !(removed || down || moved_away)) continue;", "continue;"),
    ("modify_qp is tried once", VERBS + "queue_pair.cc", "connection",
     "*again = error == ETIMEDOUT;", "*again = false;"),
    ("registrations outlive their requests", VERBS + "link.cc", "connection",
     "rails_[i].port->registrations->release(keys->held[i]);", ""),
    ("refused scratch is tried again", "runtime/engine/wait.cc", "engine",
     "!registers_.exchange(false)", "!registers_.load()"),
    ("scratch loses its registration between calls", "runtime/engine/scratch.cc", "engine",
     "if (block.data == nullptr) return;\n  std::lock_guard",
     "if (block.data == nullptr) return;\n  block.memory.reset();\n  std::lock_guard"),
    ("stripes begin anywhere", VERBS + "sender.cc", "wire",
     "constexpr size_t kStripeAlignment = 128;", "constexpr size_t kStripeAlignment = 4;"),
    ("repeated data is taken again", VERBS + "receiver.cc", "wire",
     "return nonsense(\"data for a receive that does not wait for them\");", "return;"),
    ("repeated completions of sends are taken", VERBS + "queue_pair.cc", "wire",
     "static_cast<uint32_t>(wr_id) != self->first_mark", "false"),
    ("entries are taken in any order", VERBS + "link.cc", "wire",
     "if (!in_.take(immediate.value, &entry)) return nonsense(\"an entry\");",
     "in_.take(immediate.value, &entry);"),
    ("nobody asks after a silent peer", VERBS + "worker.cc", "keepalive",
     "if (idle_rounds_ >= kIdleRounds) keep_alive();", ""),
    ("no timer for asking", VERBS + "worker.cc", "keepalive",
     "next = std::min({next, link->retry_ns(), link->keep_alive_ns(period_ns)});",
     "next = std::min(next, link->retry_ns());"),
    ("asked without a reason", VERBS + "link.cc", "keepalive",
     "!failing_.ok() || !has_requests()", "!failing_.ok()"),
    ("the receiver takes a longer message", VERBS + "receiver.cc", "random",
     "if (bytes <= slot->capacity) return false;", "return false;"),
    ("fake: an immediate overtakes data, and messages suffer", SUPPORT + "fake_verbs_wire.cc",
     "random", "if (late) return false;", ""),
    ("fake: keys are not checked", SUPPORT + "fake_verbs_memory.cc", "fake",
     "return inside && mr->pd == pd", "return mr->pd == pd"),
    ("fake: an immediate overtakes data", SUPPORT + "fake_verbs_wire.cc", "fake",
     "if (late) return false;", ""),
    ("fake: channels ring for old completions", SUPPORT + "fake_verbs_completion.cc", "fake",
     "if (cq->armed == Cq::no || cq->channel == nullptr) return;",
     "if (cq->channel == nullptr) return;"),
    ("fake: unsignaled slots are free at once", SUPPORT + "fake_verbs_wire.cc", "fake",
     "const uint64_t slot = qp->send_next++;\n  const",
     "const uint64_t slot = qp->send_next++;\n  qp->send_freed = slot + 1;\n  const"),
]


def compile_command(build, source):
    """Of the file, as the build has it; made quick."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if (build / entry["file"]).resolve() == source.resolve():
            return shlex.split(entry["command"])
    raise SystemExit(f"{source} is not in compile_commands.json")


def link_command(build, target):
    lines = subprocess.run(["ninja", "-t", "commands", target], cwd=build, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return shlex.split(lines[-1])


def survives(build, source, folder, mutation):
    """The text of what is wrong with this mutation; empty when its test fails as it should."""
    what, name, test, text, instead = mutation
    original = (source / name).read_text()
    # Line breaks are the formatter's.
    pattern = r"\s+".join(re.escape(word) for word in text.split())
    if len(re.findall(pattern, original)) != 1:
        return f"{what}: the text is not there once in {name}: {text}"
    copy = folder / pathlib.Path(name).name
    copy.write_text(re.sub(pattern, lambda _: instead, original))
    command = compile_command(build, source / name)
    mutated = str(copy.with_suffix(".o"))
    command[command.index("-o") + 1] = mutated
    command[command.index("-c") + 1] = str(copy)
    if "-MF" in command:
        command[command.index("-MF") + 1] = mutated + ".d"
    done = subprocess.run(command + ["-O0", "-Wno-error"], cwd=build, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        return f"{what}: does not compile\n{done.stdout}"
    link = link_command(build, f"tests/verbs/verbs_{test}_test")
    program = str(folder / "test")
    link[link.index("-o") + 1] = program
    # In front of the archive that holds the original.
    link.insert(link.index("-o") + 2, mutated)
    subprocess.run(link, cwd=build, check=True)
    try:
        ran = subprocess.run([program, "--gtest_brief=1"], timeout=60, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return ""  # hung, and so was seen
    return f"{what}: no test failed ({name})" if ran.returncode == 0 else ""


def main():
    build, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        def one(numbered):
            number, mutation = numbered
            folder = pathlib.Path(scratch) / str(number)
            folder.mkdir()
            return survives(build, source, folder, mutation)
        failures = [text for text in pool.map(one, enumerate(MUTATIONS)) if text]
    for text in failures:
        print(text)
    print(f"{len(MUTATIONS) - len(failures)} of {len(MUTATIONS)} mutations are caught")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
