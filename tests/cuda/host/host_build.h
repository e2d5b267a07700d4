#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "ir/kernel/kernel.h"
#include "tests/runtime/files/files_scratch.h"

namespace lathe::test {

/// The CUDA text of kernels as C++ for tests/cuda/shim, with a C function per kernel that runs a launch.
struct HostText {
  std::string text;
  std::map<std::string, std::string> entries;  ///< function names by canonical text; equal kernels share one

  explicit HostText(std::span<const kernel::Kernel> kernels);
};

/// Returns the blocks of a launch. A resident grid has up to four, depending on the seed.
std::array<std::int64_t, 3> host_grid(const kernel::Kernel& kernel, std::span<const std::int64_t> dims,
                                      std::uint64_t seed);

/// Whether this machine has a C++ compiler; prints SKIP to stdout if not.
bool has_compiler();

/// Writes the text and lathe.cuh to `scratch` and builds them with shell commands: `{root}` is the source folder,
/// `{scratch}` the folder. Throws InternalError with the compiler's output if they do not compile.
void build_text(const ScratchFolder& scratch, const HostText& text, const std::string& prelude,
                const std::string& commands);

}  // namespace lathe::test
