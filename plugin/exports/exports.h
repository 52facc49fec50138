// Marks the tables, which are all that the file exports; nccl-net.map says the same to the linker.
#pragma once

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define BITRAIL_PLUGIN_TABLE extern "C" __attribute__((visibility("default")))
