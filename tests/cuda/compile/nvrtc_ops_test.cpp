#include <catch2/catch.hpp>

#include <fmt/core.h>

#include <set>

#include "ir/kernel/printer.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/programs/lower.h"

/// Lowered kernels compiled by NVRTC.
namespace lathe::ir::test {

TEST_CASE("kernels of Transformer ops and their gradients compile without spills, in few registers") {
  const auto nvrtc = lathe::test::local_nvrtc();
  if (!nvrtc) return;
  std::set<std::string_view> wanted = {"softmax", "layer_norm", "matmul",       "gather",
                                       "gelu",    "dropout",    "cross_entropy"};
  std::set<std::string> seen;
  std::vector<kernel::Kernel> kernels;
  for_each_graph(f32, {.layout = Layout::contiguous, .sizes = Sizes::unknowns},
                 [&](const Graph& graph, const Sample&) {
                   const ValueId y = graph.outputs[0].value;
                   if (wanted.erase(graph[y].op->name.value) == 0) return;
                   const Program program = lower_gpu(run_pipeline(graph, default_pipeline()).graph);
                   for (const kernel::Kernel& kernel : program.kernels)
                     if (seen.insert(kernel::canonical_text(kernel)).second) kernels.push_back(kernel);
                 });
  CHECK(wanted == std::set<std::string_view>{});
  CHECK(kernels.size() > 10);
  // sin, cos and pow compute in f64; a matmul tile holds 16 sums per thread.
  constexpr int most_registers = 128;
  for (const auto& k :
       cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named("sm_90a"), cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.registers <= most_registers);
    CHECK(k.resources.shared_bytes <= 48 * 1024);
  }
}

}  // namespace lathe::ir::test
