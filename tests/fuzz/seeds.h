// Inputs that make sense, for the driver to mutate. Each fuzz target defines it.
#pragma once

#include <cstdint>
#include <vector>

std::vector<std::vector<uint8_t>> fuzz_seeds();
