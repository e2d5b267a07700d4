#include <catch2/catch.hpp>

#include "tests/cuda/attention/attention_cases.h"
#include "tests/cuda/attention/forward_attention.h"
#include "tests/cuda/attention/wgmma_cases.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention backward in one kernel (dK, dV and dQ) by the warpgroups of sm_90a, whose blocks add to dQ in order.
using namespace lathe;
using namespace lathe::test;

namespace {

const WgmmaCase cases[] = {
    {"causal by -1e9, heads side by side",
     {.layout = Layout::split, .mask = Mask::causal_fill, .types = Types::bf16},
     64,
     64,
     300},
    {"causal, softmax in f32, heads of 128",
     {.layout = Layout::split, .mask = Mask::causal_fill, .types = Types::f32_softmax},
     128,
     128,
     270},
    {"padding, across, wider values",
     {.mask = Mask::padding_bool, .extra = Extra::cross, .types = Types::f16},
     80,
     96,
     70},
    {"window, grouped heads",
     {.layout = Layout::grouped_expand, .mask = Mask::window, .types = Types::f16},
     16,
     24,
     400},
    {"heads of 128, no mask", {.layout = Layout::length_first, .types = Types::f16}, 128, 128, 66},
    {"ALiBi, dropout, one head of keys",
     {.layout = Layout::one_key_head, .mask = Mask::alibi, .extra = Extra::dropout, .types = Types::bf16},
     16,
     16,
     300},
};

ir::Graph in_a_model(const PatternVariant& variant, std::int64_t depth, std::int64_t values) {
  return attention_in_a_model(variant, depth, values);
}

}  // namespace

TEST_CASE("attention gradients in one kernel: masks, layouts, head sizes, ragged tiles, in the kernel interpreter") {
  check_cases(cases, in_a_model, gradients_by_wgmma);
}

TEST_CASE("attention gradients in one kernel: the CUDA text has the same bits in any order of the blocks") {
  check_cuda_text(cases, in_a_model, 331, 3);
}

TEST_CASE("attention gradients in one kernel: rows are skipped if that does not change the result") {
  const ir::Graph graph = attention_in_a_model(causal_and_padded, 16, 16);
  const ProgramInterpreter program = fused_by_wgmma(graph);
  REQUIRE(gradients_by_wgmma(program));
  // Rows that see no column weight all columns, including those beyond the diagonal.
  check_left_out(graph, program, {0, 300, 70}, {"k", "v", "weight"});
}

TEST_CASE("attention gradients in one kernel compile to wgmma without spills, within the register limit") {
  std::vector<kernel::Kernel> kernels;
  const auto add = [&](const PatternVariant& variant, std::int64_t head, const DimBindings& known = {}) {
    const ProgramInterpreter program = fused_by_wgmma(attention_in_a_model(variant, head, head, known));
    REQUIRE(gradients_by_wgmma(program));
    kernels.push_back(*gradients_by_wgmma(program));
  };
  const DimBindings sizes{{"N", 4}, {"S", 4096}};
  for (const std::int64_t head : {64, 96, 128})
    for (const Mask mask : {Mask::none, Mask::causal_fill, Mask::alibi})
      for (const DimBindings& known : {DimBindings{}, sizes})
        add({.layout = Layout::split, .mask = mask, .types = Types::f32_softmax}, head, known);
  add({.layout = Layout::split, .mask = Mask::padding_bool, .types = Types::f32_softmax}, 128, sizes);
  for (const Mask mask : {Mask::window, Mask::padding_bool, Mask::both_and})
    add({.layout = Layout::split, .mask = mask, .types = Types::f32_softmax}, 64);
  add({.layout = Layout::split, .mask = Mask::causal_fill, .extra = Extra::dropout, .types = Types::f32_softmax}, 64);
  check_resources(kernels);
}
