#include <catch2/catch.hpp>

#include "tests/cuda/attention/forward_attention.h"
#include "tests/cuda/attention/wgmma_cases.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/tensors/compare_tensors.h"

/// Runs the CUDA text of warpgroup attention under ThreadSanitizer, with an OS thread per thread of a block.
using namespace lathe;
using namespace lathe::test;

namespace {

const DimBindings dims = {{"N", 1}, {"S", 330}};  // six tiles: more than a pipeline's slots

const PatternVariant causal = {.layout = Layout::flat, .mask = Mask::causal_fill, .types = Types::bf16};

Tensors run(const ProgramInterpreter& program, RacingCuda& cuda, const Tensors& arguments) {
  return program.run(arguments,
                     [&](const auto& kernel, auto buffers, auto sizes) { return cuda.run(kernel, buffers, sizes); });
}

}  // namespace

TEST_CASE("races: none in attention by warpgroups with reused slots, forward and backward") {
  const ir::Graph forward = forward_attention(causal, 16, 16), gradients = attention_with_gradients(causal, 16, 24),
                  in_one_kernel = attention_in_a_model(causal, 16, 24);
  CHECK(gradients_by_wgmma(fused_by_wgmma(in_one_kernel)));
  for (const auto& [lower, graph] : {std::pair{&fused_by_wgmma, forward},
                                     {&fused_in_turns, forward},
                                     {&fused_by_wgmma, gradients},
                                     {&fused_by_wgmma, in_one_kernel}}) {
    const ProgramInterpreter program = lower(graph);
    REQUIRE((rows_by_wgmma(program) || columns_by_wgmma(program)));
    auto cuda = RacingCuda::build(program.program().kernels);
    if (!cuda) return;
    const Tensors arguments = random_arguments(graph, dims), found = run(program, *cuda, arguments);
    for (const auto& [name, value] : ir::interpret(graph, arguments)) {
      INFO(name);
      CHECK(error_of(found.at(name), value) <= 1.6e-2);
    }
  }
}

TEST_CASE("races: detects omitted waits in attention by warpgroups") {
  const auto detects = [](const ir::Graph& graph, std::initializer_list<const char*> waits) {
    const ProgramInterpreter program = fused_by_wgmma(graph);
    const Tensors arguments = random_arguments(graph, dims);
    for (const char* wait : waits) {
      INFO(wait);
      std::string prelude = cuda::prelude();
      const auto at = prelude.find(wait);
      REQUIRE(at != std::string::npos);
      prelude.erase(at, std::string_view(wait).size());
      auto cuda = RacingCuda::build(program.program().kernels, prelude);
      if (!cuda) return;
      CHECK_THROWS_AS(run(program, *cuda, arguments), Race);
    }
  };
  detects(attention_with_gradients(causal, 16, 24), {"wait_barrier(barriers + at, round);", "wait_wgmma<0>();"});
  detects(attention_in_a_model(causal, 16, 24),
          {"shim_wait_blocks(passed, i32(rank));", "shim_named_barrier(1, threads, true);",
           "wait_barrier(barriers + givers + number, round ^ 1);"});
}
