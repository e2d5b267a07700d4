#include <catch2/catch.hpp>

#include "codegen/cuda/mapping.h"
#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Matmuls that are large enough for tiles of 128 x 128; gpu_ops_test.cpp has the small ones.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;

namespace {

constexpr std::int64_t wide_tile_bytes = std::int64_t{2} * 16 * (128 + 4) * 4;

/// Operands contiguous along the reduced dim, and along their rows; a ragged last tile in every dim.
constexpr std::string_view graphs[] = {
    R"(graph @along_k(input %x: f32[m, 21], input %w: f32[136, 21], input %b: f32[136]) {
  %1 = linear %x, %w
  %2 = add %1, %b
  %3 = gelu %2
  output "y" %3
})",
    R"(graph @along_rows(input %x: f32[21, m], input %w: f32[21, 136]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = matmul %1, %w
  output "y" %2
})"};

}  // namespace

TEST_CASE("products by tiles of 128: ragged edges, both axes, an epilogue") {
  for (const std::string_view text : graphs) {
    const ir::Graph graph = ir::parse_graph(text, "product");
    const ProgramInterpreter program(graph, lower_gpu);
    const std::vector<kernel::Kernel>& kernels = program.program().kernels;
    INFO(text);
    REQUIRE(kernels.size() == 1);
    CHECK(cuda::mapping_of(kernels[0], gpu_info("sm_80")).shared_bytes == wide_tile_bytes);
    const Tensors arguments = test::random_arguments(graph, {{"m", 131}});
    const Tensors expected = ir::interpret(graph, arguments), found = program.run(arguments);
    CHECK(test::error_of(found.at("y"), expected.at("y")) <= 1e-5);
    const auto host = HostCuda::build(kernels);
    if (!host) return;
    const Tensors by_text = program.run(
        arguments, [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 1); });
    CHECK(test::error_of(by_text.at("y"), found.at("y")) <= 1e-6);
  }
}

TEST_CASE("f32 matmuls with few tiles and large k use split-K with a second kernel for the sum") {
  const ir::Graph graph = ir::parse_graph(
      R"(graph @dw(input %x: f32[k, 136], input %dy: f32[k, 70], input %w: f32[136, 70]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = matmul %1, %dy
  %3 = add %2, %w
  output "y" %3
})",
      "product");
  const ProgramInterpreter program(graph, lower_gpu);
  const std::vector<kernel::Kernel>& kernels = program.program().kernels;
  REQUIRE(kernels.size() == 2);
  const auto host = HostCuda::build(kernels);
  for (const std::int64_t k : {1, 17, 333}) {
    const Tensors arguments = test::random_arguments(graph, {{"k", k}});
    const Tensors expected = ir::interpret(graph, arguments), found = program.run(arguments);
    CHECK(test::error_of(found.at("y"), expected.at("y")) <= 1e-5);
    if (!host) continue;
    const Tensors by_text = program.run(
        arguments, [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 1); });
    CHECK(test::same_bits(by_text.at("y"), found.at("y")));
  }
  const ir::Graph few = ir::parse_graph(R"(graph @few(input %x: f32[136, 2047], input %w: f32[70, 2047]) {
  %1 = linear %x, %w
  output "y" %1
})",
                                        "product");
  CHECK(ProgramInterpreter(few, lower_gpu).program().kernels.size() == 1);
}

TEST_CASE("matmuls by tiles of 128 keep their accumulators in registers") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  for (const std::string_view text : graphs) {
    const Program program = ProgramInterpreter(ir::parse_graph(text, "product"), lower_gpu).program();
    for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
      for (const auto& k :
           cuda::compile_kernels(*nvrtc, program.kernels, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
        INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
        CHECK(k.resources.spill_bytes == 0);
        CHECK(k.resources.registers <= 176);
      }
  }
}
