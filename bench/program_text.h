#pragma once

#include <filesystem>

#include "passes/program/program.h"

namespace lathe::bench {

/// Writes a compiled program as text (kernels in canonical form, launches, buffers), to check that a change leaves
/// all programs unchanged.
void write_text(const std::filesystem::path& file, const Program& program);

}  // namespace lathe::bench
