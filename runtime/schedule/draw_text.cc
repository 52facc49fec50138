#include <fmt/core.h>

#include "runtime/schedule/draw.h"

namespace bitrail::schedule {

namespace {

const char* role_name(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::scratch:
      return "scratch";
    case Role::worker_error:
      return "worker error";
    case Role::server_error:
      return "server error";
    case Role::external:
      return "external";
  }
  return "?";
}

std::string buffer_text(const Buffer& buffer) {
  std::string text =
      fmt::format("  {:<14} {}, {} bits an element", buffer.name, role_name(buffer.role),
                  buffer.unit.bits ? std::to_string(buffer.unit.bits) : "data");
  if (buffer.unit.group_bytes) text += fmt::format(" + {} bytes a group", buffer.unit.group_bytes);
  if (buffer.slots > 1) text += fmt::format(", {} slots", buffer.slots);
  if (buffer.fraction > 1) text += fmt::format(", one chunk of {}", buffer.fraction);
  if (buffer.pieces > 1) text += fmt::format(", one piece of {}", buffer.pieces);
  return text + "\n";
}

std::string list(const Schedule& schedule, const char* title, const std::vector<Range>& ranges) {
  std::string text;
  for (const Range& range : ranges)
    text += (text.empty() ? title : ", ") + range_text(schedule, range);
  return text;
}

}  // namespace

std::string range_text(const Schedule& schedule, const Range& range) {
  const Buffer& buffer = schedule.buffers[range.buffer];
  std::string text = buffer.name;
  if (buffer.slots > 1) text += fmt::format("[{}]", range.slot);
  if (range.span > 1) {
    text +=
        fmt::format(" chunks {}..{}/{}", range.chunk, range.chunk + range.span - 1, range.chunks);
  } else if (range.chunks > 1) {
    text += fmt::format(" chunk {}/{}", range.chunk, range.chunks);
  }
  if (range.pieces > 1) text += fmt::format(" piece {}/{}", range.piece, range.pieces);
  return text;
}

std::string draw_text(const Schedule& schedule) {
  std::string text =
      fmt::format("{}: rank {} of {}\n", schedule.name, schedule.rank, schedule.world_size);
  for (const Buffer& buffer : schedule.buffers) text += buffer_text(buffer);
  for (OperationId id = 0; id < schedule.operations.size(); id++) {
    const Operation& o = schedule.operations[id];
    text += fmt::format("{:>5} {:<14}", id, o.kind->name);
    if (o.peer >= 0)
      text += fmt::format(" {} {}, message {}", o.kind->meaning == Meaning::recv ? "from" : "to",
                          o.peer, o.message);
    if (o.nested) text += fmt::format(" {}", o.nested->name);
    text += list(schedule, " reads ", o.reads);
    text += list(schedule, " writes ", o.writes);
    for (size_t i = 0; i < o.after.size(); i++)
      text += fmt::format("{}{}", i ? ", " : "  after ", o.after[i]);
    text += "\n";
  }
  return text;
}

}  // namespace bitrail::schedule
