#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "tools/bitrail/topo/draw.h"
#include "tools/bitrail/topo/layout.h"

namespace bitrail::tool {
namespace {

using namespace topology;

// Pixels.
constexpr double kMargin = 24, kRail = 16, kSwitchBar = 26, kLabel = 240;

constexpr const char* kColours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759",
                                    "#76b7b2", "#b07aa1", "#9c755f", "#d4a017"};

const char* colour(size_t rail) { return kColours[rail % std::size(kColours)]; }

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

// What does not fit ends in dots.
std::string label(double x, double y, std::string text, size_t most, const char* attributes) {
  if (text.size() > most) text = text.substr(0, most - 1) + "\xe2\x80\xa6";
  if (std::string_view(attributes).find("fill=") == std::string_view::npos)
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#223\" {}>{}</text>\n", x, y,
                       attributes, escape(text));
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     escape(text));
}

std::string rectangle(const Box& box, const char* fill, const char* stroke) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" "
      "stroke=\"{}\"/>\n",
      box.x, box.y, box.width, box.height, fill, stroke);
}

std::string line(double x1, double y1, double x2, double y2, const char* stroke, double width) {
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", x1, y1,
      x2, y2, stroke, width);
}

std::string frames(const Layout& layout) {
  constexpr const char* kFills[] = {"#f4f6f8", "#e8edf2", "#dce4ec", "#d0dbe6"};
  std::string body;
  for (const Box& box : layout.frames)
    body += rectangle(box, kFills[std::min(box.depth, 3)], "#b8c4d0");
  return body;
}

// On top of the links that cross them.
std::string titles(const Layout& layout) {
  std::string body;
  for (const Box& box : layout.frames)
    body += label(box.x + 6, box.y + 13, box.title, static_cast<size_t>(box.width / 6.2),
                  "fill=\"#556\" stroke=\"#eef2f5\" stroke-width=\"3\" paint-order=\"stroke\"");
  return body;
}

std::string leaf(const Box& box, const std::string& second, const char* fill, const char* stroke) {
  return rectangle(box, fill, stroke) +
         label(box.middle(), box.y + 21, box.title, 13,
               "text-anchor=\"middle\" font-weight=\"bold\"") +
         label(box.middle(), box.y + 37, second, 15, "text-anchor=\"middle\" fill=\"#445\"");
}

std::string leaves(const Machine& m, const Layout& layout, const std::vector<int>& rails) {
  std::string body;
  for (size_t i = 0; i < m.gpus.size(); i++)
    body += leaf(layout.gpus[i],
                 m.gpus[i].rank >= 0 ? fmt::format("rank {}", m.gpus[i].rank) : std::string("GPU"),
                 "#d8efd3", "#59a14f");
  for (size_t i = 0; i < m.ports.size(); i++) {
    const auto rail = std::ranges::find(rails, static_cast<int>(i));
    body += leaf(layout.ports[i], m.ports[i].mbps > 0 ? speed_text(m.ports[i].mbps) : "NIC", "#fff",
                 rail == rails.end() ? "#999" : colour(static_cast<size_t>(rail - rails.begin())));
  }
  return body;
}

// Arcs above the frames for direct links; for NVSwitches a bar that all their GPUs reach.
std::string nvlinks(const Machine& m, const Layout& layout) {
  const std::vector<NvPair> pairs = nvlink_pairs(m);
  std::string body;
  const double bar = layout.top - 12 - kSwitchBar;
  if (!m.nvswitches.empty()) {
    for (size_t gpu = 0; gpu < m.gpus.size(); gpu++)
      if (switch_links(m, static_cast<int>(gpu)) > 0 ||
          std::ranges::any_of(m.links, [&](const NvLink& l) {
            return l.gpu == static_cast<int>(gpu) && l.target == LinkTarget::nvswitch;
          }))
        body += line(layout.gpus[gpu].middle(), layout.gpus[gpu].y, layout.gpus[gpu].middle(),
                     bar + kSwitchBar, "#76b900", 2.5);
    const Box box{kMargin, bar, layout.width, kSwitchBar, "", 0};
    body += rectangle(box, "#e9f5d0", "#76b900");
    body += label(box.middle(), bar + 17, fmt::format("NVSwitch \xc3\x97 {}", m.nvswitches.size()),
                  60, "text-anchor=\"middle\"");
  }
  for (size_t a = 0; a < m.gpus.size(); a++) {
    for (size_t b = a + 1; b < m.gpus.size(); b++) {
      const NvPair& pair = pairs[a * m.gpus.size() + b];
      if (pair.bandwidth == 0 || pair.by_switch) continue;
      const double x1 = layout.gpus[a].middle(), x2 = layout.gpus[b].middle();
      const double y = layout.gpus[a].y, height = std::min(30 + std::abs(x2 - x1) / 6, 130.0);
      body += fmt::format(
          "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" "
          "stroke=\"#76b900\" stroke-width=\"{:.1f}\"><title>{} - {}: {} NVLinks, {:.4g} "
          "GB/s</title></path>\n",
          x1, y, x1, y - height, x2, y - height, x2, y, 1.0 + std::min(pair.count, 4),
          escape(m.gpus[a].name), escape(m.gpus[b].name), pair.count, pair.bandwidth);
    }
  }
  return body;
}

// From each GPU to the ports that carry its share; broken where the way leaves the PCI switches.
std::string own_routes(const Machine& m, const Layout& layout, const std::vector<int>& rails) {
  const std::vector<std::vector<int>> dealt = deal_ports(m);
  const Routes routes = find_routes(m);
  std::string body;
  for (size_t gpu = 0; gpu < m.gpus.size(); gpu++) {
    for (int port : dealt[gpu]) {
      const Route& route = routes.to_port(gpu, static_cast<size_t>(port));
      const auto rail = static_cast<size_t>(std::ranges::find(rails, port) - rails.begin());
      const Box& from = layout.gpus[gpu];
      const Box& to = layout.ports[static_cast<size_t>(port)];
      const double y = from.y + from.height;
      const double dip = std::min(14 + std::abs(to.middle() - from.middle()) / 30, 34.0);
      body += fmt::format(
          "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" stroke=\"{}\" "
          "stroke-width=\"2\"{}><title>{} to {}: {}, {:.4g} GB/s</title></path>\n",
          from.middle(), y, from.middle(), y + dip, to.middle() - 8, y + dip, to.middle() - 8, y,
          colour(rail), route.path <= Path::pxb ? "" : " stroke-dasharray=\"5 3\"",
          escape(m.gpus[gpu].name), escape(m.ports[static_cast<size_t>(port)].name),
          name(route.path), route.bandwidth);
    }
  }
  return body;
}

// The lines that lead to the same rail of the other nodes.
std::string draw_rails(const Machine& m, const Layout& layout, const std::vector<int>& rails,
                       double top) {
  std::string body;
  for (size_t rail = 0; rail < rails.size(); rail++) {
    const auto port = static_cast<size_t>(rails[rail]);
    const Box& nic = layout.ports[port];
    const double y = top + kRail * static_cast<double>(rail), right = kMargin + layout.width + 12;
    body += line(nic.middle() + 8, nic.y + nic.height, nic.middle() + 8, y, colour(rail), 2);
    body += line(nic.middle() + 8, y, right, y, colour(rail), 3);
    body += label(
        right + 6, y + 4,
        fmt::format("rail {}: {}, {}", rail, m.ports[port].name, speed_text(m.ports[port].mbps)),
        44, "");
  }
  return body;
}

struct Picture {
  std::string body;
  double width = 0, bottom = 0;
};

Picture draw_kind(const Cluster& cluster, int kind, double y) {
  const Machine& m = cluster.kinds[static_cast<size_t>(kind)];
  const std::vector<int> rails = fast_rails(m);
  Picture picture;
  if (cluster.nodes.size() > 1) {
    picture.body += label(kMargin, y + 12, fmt::format("nodes {}", nodes_of(cluster, kind)), 120,
                          "font-weight=\"bold\"");
    y += 22;
  }
  const bool arcs = std::ranges::any_of(
      m.links, [](const NvLink& link) { return link.target == LinkTarget::gpu; });
  if (!m.nvswitches.empty()) y += kSwitchBar + 12;
  if (arcs) y += 30;
  const Layout layout = lay_out(m, kMargin, y);
  const double rails_top = layout.bottom + 26;
  picture.body += frames(layout) + "<g fill=\"none\">\n" + nvlinks(m, layout) +
                  draw_rails(m, layout, rails, rails_top) + own_routes(m, layout, rails) +
                  "</g>\n" + titles(layout) + leaves(m, layout, rails);
  picture.width = layout.width + 2 * kMargin + kLabel;
  picture.bottom = rails_top + kRail * static_cast<double>(rails.size()) + 10;
  return picture;
}

}  // namespace

std::string topology_svg(const Cluster& cluster, const std::string& origin) {
  double width = 640, y = 40;
  const std::string title =
      fmt::format("{}: {}", origin.substr(origin.rfind('/') + 1), headline(cluster));
  std::string body = label(kMargin, 24, title, 160, "font-size=\"14\" font-weight=\"bold\"");
  for (int kind = 0; kind < static_cast<int>(cluster.kinds.size()); kind++) {
    const Picture picture = draw_kind(cluster, kind, y);
    body += picture.body;
    width = std::max(width, picture.width);
    y = picture.bottom + 16;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{2}</svg>\n",
      width, y, body);
}

}  // namespace bitrail::tool
