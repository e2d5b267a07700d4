#pragma once

#include <filesystem>

#include "passes/program/program.h"

namespace lathe::bench {

/// Writes what a compilation makes as text (kernels in canonical form, launches, buffers), for comparisons before and
/// after a change that must not change any.
void write_text(const std::filesystem::path& file, const Program& program);

}  // namespace lathe::bench
