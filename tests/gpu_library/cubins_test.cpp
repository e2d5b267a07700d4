#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "codegen/cuda/nvrtc.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "runtime/emit_library.h"

/// Libraries for GPUs by NVIDIA's own compiler.
using namespace lathe;

namespace {

/// Whether this machine has NVRTC, and not only its mock; prints SKIP if not.
bool has_nvrtc() {
  try {
    if (!cuda::Nvrtc().version().starts_with("0.")) return true;
    fmt::print("SKIP: this process has loaded the mock of NVRTC\n");
  } catch (const UserError& error) {
    fmt::print("SKIP: {}\n", error.what());
  }
  return false;
}

/// Returns the number of ELF files for GPUs in an object.
int count_cubins(const std::string& object) {
  constexpr std::size_t machine_at = 18;
  constexpr std::uint16_t machine_of_gpus = 190;
  int count = 0;
  for (std::size_t at = object.find("\177ELF"); at != object.npos; at = object.find("\177ELF", at + 1)) {
    std::uint16_t machine = 0;
    if (at + machine_at + sizeof machine <= object.size())
      std::memcpy(&machine, object.data() + at + machine_at, sizeof machine);
    count += machine == machine_of_gpus;
  }
  return count;
}

}  // namespace

TEST_CASE("gpu library: NVRTC compiles a cubin of each kernel, for each architecture") {
  if (!has_nvrtc()) return;
  const ir::Graph graph = ir::parse_graph(R"(graph @layer(input %x: f32[n, 64], parameter %w: f32[64, 64]) {
  %1 = matmul %x, %w
  %2 = softmax %1 {dim=1}
  output "y" %2
})");
  const EmittedLibrary library =
      emit_library(std::vector<LibraryGraph>{{"", graph}},
                   {.prefix = "g", .targets = {"cuda:sm_80", "cuda:sm_90a"}, .most = {{"n", 256}}, .threads = 2});
  int levels = 0;
  for (const LibraryFile& object : library.objects) {
    CAPTURE(object.name);
    const bool is_level = object.name.find("sm_") != std::string::npos;
    CHECK((count_cubins(object.bytes) > 0) == is_level);
    levels += is_level;
  }
  CHECK(levels == 2);
  CHECK(count_cubins(library.archive.bytes) >= 4);
}
