#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "runtime/schedule/draw.h"
#include "runtime/schedule/tracks.h"

namespace bitrail::schedule {

namespace {

// Pixels.
constexpr double kWidth = 1400, kLabel = 130, kRow = 16, kGap = 10, kHeader = 28;

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

const char* colour(Meaning meaning) {
  switch (meaning) {
    case Meaning::send:
      return "#4e79a7";
    case Meaning::recv:
      return "#a0cbe8";
    case Meaning::copy:
      return "#bab0ac";
    case Meaning::reduce:
      return "#59a14f";
    case Meaning::pack:
      return "#f28e2b";
    case Meaning::unpack:
      return "#ffbe7d";
    case Meaning::none:
      return "#e15759";
    case Meaning::call:
    case Meaning::opaque:
      break;
  }
  return "#b07aa1";
}

std::string tooltip(const Schedule& schedule, OperationId id) {
  const Operation& o = schedule.operations[id];
  std::string text = fmt::format("{} {}", id, o.kind->name);
  if (o.peer >= 0)
    text += fmt::format(" {} {}, message {}", o.kind->meaning == Meaning::recv ? "from" : "to",
                        o.peer, o.message);
  for (const Range& range : o.reads) text += "\nreads " + range_text(schedule, range);
  for (const Range& range : o.writes) text += "\nwrites " + range_text(schedule, range);
  return escape(text);
}

std::string label(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, y, escape(text));
}

}  // namespace

std::string draw_svg(const std::vector<Schedule>& ranks, const Timeline& timeline) {
  const double scale = (kWidth - kLabel) / std::max(timeline.end, 1e-9);
  std::string body = label(4, 18, ranks.empty() ? "" : ranks[0].name);
  double y = kHeader;
  for (size_t r = 0; r < ranks.size(); r++) {
    const Schedule& schedule = ranks[r];
    const Tracks tracks = assign_tracks(schedule, timeline.ranks[r]);
    for (size_t track = 0; track < tracks.names.size(); track++)
      body += label(4, y + kRow * static_cast<double>(track) + 12,
                    fmt::format("rank {} {}", schedule.rank, tracks.names[track]));
    for (OperationId id = 0; id < schedule.operations.size(); id++) {
      const Span& span = timeline.ranks[r][id];
      body += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{}</title></rect>\n",
          kLabel + span.begin * scale, y + kRow * static_cast<double>(tracks.of[id]) + 1,
          std::max((span.end - span.begin) * scale, 0.5), kRow - 2,
          colour(schedule.operations[id].kind->meaning), tooltip(schedule, id));
    }
    y += kRow * static_cast<double>(tracks.names.size()) + kGap;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<style>rect{{stroke:#fff;stroke-width:.4}}</style>\n{2}</svg>\n",
      kWidth, y, body);
}

}  // namespace bitrail::schedule
