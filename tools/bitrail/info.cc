#include "tools/bitrail/info.h"

#include <bitrail/bitrail.h>
#include <fmt/core.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/transport_options.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/config/variables.h"
#include "runtime/transport/transport.h"
#include "tools/bitrail/libraries.h"
#include "tools/bitrail/plugin_info.h"

namespace bitrail::tool {
namespace {

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

void heading(const char* text) { print(fmt::format("\n{}\n", text)); }

void line(const std::string& name, const std::string& value) {
  print(fmt::format("  {:<24} {}\n", name, value));
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string text; std::getline(file, text);) {
    const size_t colon = text.find(": ");
    if (text.rfind("model name", 0) == 0 && colon != std::string::npos)
      return text.substr(colon + 2);
  }
  return "unknown processor";
}

void show_libraries() {
  heading("Libraries");
  for (const Library& library : libraries()) line(library.name, library.version);
}

void show_devices() {
  heading("Devices");
  struct sysinfo memory = {};
  sysinfo(&memory);
  line("host",
       fmt::format("{}, {} processors, {:.1f} GiB", processor(), sysconf(_SC_NPROCESSORS_ONLN),
                   static_cast<double>(memory.totalram) * memory.mem_unit / (1 << 30)));
}

void show_transports(const config::Settings& settings) {
  heading("Transports");
  for (const transport::Availability& entry : transport::available())
    line(entry.name, fmt::format("{}{}{}", entry.available ? "available" : "not available",
                                 entry.detail.empty() ? "" : ": ", entry.detail));
  transport::Options options;
  options.bind_address = settings.interface;
  options.ib = api::ib_options(settings);
  for (const std::string& port : transport::verbs_ports(options)) line("  verbs port", port);
  std::unique_ptr<transport::Context> context;
  const Status status = transport::open(settings.transport, options, &context);
  if (!status.ok()) {
    line(settings.transport, "cannot be opened: " + status.text());
    return;
  }
  for (int index = 0; index < context->devices(); index++) {
    const transport::DeviceProperties& device = context->device(index);
    line(fmt::format("  {} device {}", context->name(), index),
         fmt::format("{}, {:.0f} Mbit/s, {:.2f} us, NUMA node {}", device.name, device.speed_mbps,
                     device.latency_us, device.numa_node));
  }
}

void show_launcher(const config::Settings& settings) {
  heading("Launcher");
  bootstrap::World world;
  const Status status = bootstrap::detect(nullptr, settings, &world);
  if (!status.ok()) return line("unusable", status.text());
  line(world.launcher, fmt::format("rank {} of {}", world.rank, world.size));
  line("rendezvous", !world.rendezvous.empty() ? world.rendezvous
                                               : (world.exchange ? "by the launcher" : "none"));
  line("secret", world.secret.empty() ? "none" : "set, not shown");
}

const char* origin_name(config::Origin origin) {
  static const char* const names[] = {"default", "environment", "file"};
  return names[static_cast<int>(origin)];
}

Status show_variables() {
  std::vector<config::Value> values;
  BITRAIL_TRY(config::describe(&values));
  heading("Variables");
  for (const config::Value& value : values)
    line(value.name, fmt::format("{:<20} ({}) {}", value.text.empty() ? "-" : value.text,
                                 origin_name(value.origin), value.meaning));
  return {};
}

// The manual's page; a test compares it with docs/variables.md.
void print_markdown() {
  print(
      "# Variables\n\n"
      "Every `BITRAIL_*` variable. The environment wins over the file that `BITRAIL_CONFIG` "
      "names,\n"
      "which wins over the default. A name that is not here draws a warning with the nearest "
      "known\n"
      "one; a value that cannot be used is an error. This page is the output of\n"
      "`bitrail info --markdown`.\n\n"
      "| variable | default | allowed | meaning |\n|---|---|---|---|\n");
  for (const config::Variable& variable : config::kVariables) {
    std::string allowed(variable.choices);
    for (size_t bar = 0; (bar = allowed.find('|', bar)) != std::string::npos;)
      allowed.replace(bar, 1, ", ");
    if (allowed.empty())
      allowed = variable.member.index() == 0 ? "text"
                                             : fmt::format("{} to {}", variable.low, variable.high);
    print(fmt::format("| `{}` | {} | {} | {} |\n", variable.name,
                      variable.standard.empty() ? "" : fmt::format("`{}`", variable.standard),
                      allowed, variable.meaning));
  }
}

Status show_all() {
  print(fmt::format("BitRail {}\n", bitrail_version()));
  show_libraries();
  show_devices();
  config::Settings settings;
  BITRAIL_TRY(config::load(&settings));
  show_transports(settings);
  show_launcher(settings);
  return show_variables();
}

}  // namespace

int info_main(int argc, char** argv) {
  CLI::App app{"Shows versions, libraries, transports, devices, the launcher and every variable.",
               "bitrail info"};
  bool markdown = false;
  app.add_flag("--markdown", markdown, "Print the manual's page about the variables instead");
  std::string plugin;
  app.add_option("--plugin", plugin, "Show this NCCL net plugin's versions and devices instead");
  CLI11_PARSE(app, argc, argv);
  if (!plugin.empty()) return show_plugin(plugin);
  if (markdown) {
    print_markdown();
    return 0;
  }
  const Status status = show_all();
  if (status.ok()) return 0;
  std::fputs(fmt::format("bitrail info: {}\n", status.text()).c_str(), stderr);
  return 1;
}

}  // namespace bitrail::tool
