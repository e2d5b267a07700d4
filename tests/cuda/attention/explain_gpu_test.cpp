#include "passes/explain/explain_attention.h"
#include "passes/machines/gpu_machine.h"

#include <catch2/catch.hpp>

#include <string>

#include "frontend/train/training.h"
#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "tests/cuda/attention/forward_attention.h"
#include "tests/support/graphs/small_models.h"

/// explain_fusion for attention on a GPU.
using namespace lathe;
using Catch::Contains;

namespace {

/// Scores in one dtype, softmax in f32, weights and values in another one.
std::string explained(const ir::Graph& graph, bool warpgroups) {
  const Machine machine = gpu_machine(gpu_info(warpgroups ? "sm_90a" : "sm_80"));
  return explain_fusion(lower_graph(graph, machine), machine.info);
}

std::string told(const std::string& scores, const std::string& weights, int depth = 16, bool warpgroups = false) {
  const ir::Graph graph = ir::parse_graph("graph @a(input %q: " + scores + "[S, d=" + std::to_string(depth) +
                                              "], input %v: " + weights + "[S, 16]) {" + R"(
  %scores = contract %q, %q {spec="ab,cb->ac"}  loc("net.cpp":7)
  %wide = cast %scores {dtype=f32}              loc("net.cpp":8)
  %w = softmax %wide {dim=1}                    loc("net.cpp":9)
  %narrow = cast %w {dtype=)" + weights + R"(}     loc("net.cpp":10)
  %y = contract %narrow, %v {spec="ab,bc->ac"}  loc("net.cpp":11)
  output "y" %y
})",
                                          "a");
  return explained(ir::run_pipeline(graph, ir::default_pipeline()).graph, warpgroups);
}

}  // namespace

TEST_CASE("explain lists the kernels of attention on a GPU and their tensor core use") {
  for (const bool warpgroups : {false, true}) {
    const std::string text = told("bf16", "bf16", 16, warpgroups);
    INFO(text);
    CHECK_THAT(text, Contains("softmax at net.cpp:9: fused") && Contains("by k0_attention_") &&
                         Contains(warpgroups ? ": warpgroups, tensor cores, " : ": tensor cores, ") &&
                         Contains(" bytes of shared memory per block") && !Contains("not by warpgroups") &&
                         !Contains("not by tensor cores"));
  }
  CHECK_THAT(told("f32", "f32"), Contains("not by tensor cores, which multiply only bf16 or f16: %") &&
                                     Contains("contract multiplies f32 and f32 (net.cpp:7)"));
  CHECK_THAT(told("bf16", "f32"), Contains("contract multiplies f32 and f32 (net.cpp:11)"));
  CHECK_THAT(told("f16", "bf16"), Contains("contract multiplies bf16 and bf16 (net.cpp:11)"));
}

TEST_CASE("explain reports the condition that keeps attention on sm_90a from warpgroups") {
  CHECK_THAT(told("bf16", "bf16", 12, true),
             Contains(": tensor cores, ") &&
                 Contains("\n    not by warpgroups: its keys are computed, or no boxes that TMA copies\n"));
  CHECK_THAT(told("f32", "f32", 16, true), !Contains("not by warpgroups"));
}

TEST_CASE("f32 slices that are all cast to bf16 are stored as bf16 for TMA copies") {
  const ir::Graph graph = ir::parse_graph(R"(graph @a(input %x: f32[S, 48], input %b: f32[48]) {
  %qkv = add %x, %b
  %q32 = slice %qkv {dim=1, start=0, stop=16}
  %k32 = slice %qkv {dim=1, start=16, stop=32}
  %v32 = slice %qkv {dim=1, start=32, stop=48}
  %q = cast %q32 {dtype=bf16}
  %k = cast %k32 {dtype=bf16}
  %v = cast %v32 {dtype=bf16}
  %scores = contract %q, %k {spec="ab,cb->ac"}
  %w = softmax %scores {dim=1}
  %y = contract %w, %v {spec="ab,bc->ac"}
  output "y" %y
})",
                                          "a");
  CHECK_THAT(explained(ir::run_pipeline(graph, ir::default_pipeline()).graph, true),
             Contains("attention_by_wgmma_") && !Contains("not by warpgroups"));
}

TEST_CASE("explain reports which backward attention kernels on sm_90a use warpgroups") {
  const auto told_of = [](std::int64_t depth) {
    const ir::Graph graph = test::attention_with_gradients({.types = test::Types::bf16}, depth, 16);
    return explained(ir::run_pipeline(graph, ir::default_pipeline()).graph, true);
  };
  const std::string text = told_of(16);
  INFO(text);
  CHECK_THAT(text, Contains("attention_columns_by_wgmma_") && Contains("attention_rows_by_wgmma_") &&
                       Contains(": warpgroups, tensor cores, ") &&
                       Contains("not by warpgroups: its softmax takes several loops over the columns"));
  CHECK_THAT(told_of(264), Contains("not by warpgroups: sums over columns of 16, 264 elements, where registers") &&
                               Contains("by k1_attention_columns_") &&
                               Contains("not by warpgroups: sums over rows of 16, 264 elements, where registers"));
}

TEST_CASE("explain reports whether one kernel computes all gradients of an attention, and why not") {
  const auto told_of = [](const test::PatternVariant& variant, std::int64_t depth, const DimBindings& sizes = {}) {
    const ir::Graph graph = test::attention_in_a_model(variant, depth, depth, sizes);
    return explained(ir::run_pipeline(graph, ir::default_pipeline()).graph, true);
  };
  const test::PatternVariant causal = {.mask = test::Mask::causal_fill, .types = test::Types::bf16};
  const std::string text = told_of(causal, 64);
  INFO(text);
  CHECK_THAT(text, Contains("attention_gradients_by_wgmma_") && Contains("attention_totals_") &&
                       !Contains("not in one kernel"));
  CHECK_THAT(
      told_of(causal, 64, {{"N", 1}, {"S", 1024}}),
      Contains("attention_columns_by_wgmma_") && Contains("not in one kernel: 16 blocks for 132 multiprocessors"));
  CHECK_THAT(told_of({.mask = test::Mask::window, .types = test::Types::bf16}, 128),
             Contains("attention_columns_by_wgmma_") &&
                 Contains("not in one kernel: a thread needs about 232 registers, and has 224"));
}

TEST_CASE("explain reports the kernel that runs an attention by warpgroups: long rows take turns") {
  const auto told_of = [](std::int64_t length) {
    const ir::Graph graph = test::forward_attention({.types = test::Types::bf16}, 64, 64, {{"N", 16}, {"S", length}});
    return explained(ir::run_pipeline(graph, ir::default_pipeline()).graph, true);
  };
  CHECK_THAT(told_of(1024), Contains("_attention_by_wgmma_") && !Contains("_in_turns_"));
  CHECK_THAT(told_of(4096), Contains("_attention_by_wgmma_in_turns_"));
}

TEST_CASE("explain reports the condition that keeps attention from fusion on a GPU") {
  const std::string text = told("bf16", "bf16", 600);
  INFO(text);
  CHECK_THAT(text, Contains("softmax at net.cpp:9: not fused") && Contains("600 elements") && Contains("net.cpp:7") &&
                       !Contains("_attention_"));
  const ir::Graph none = ir::parse_graph("graph @n(input %x: f32[n]) {\n  %1 = exp %x\n  output \"y\" %1\n}", "n");
  CHECK(explained(none, false) == "this graph has no softmax\n");
}

TEST_CASE("explain lists the matmuls of a mixed-precision step, and what keeps one from warpgroups") {
  const auto told_of = [](std::int64_t words) {
    models::GptConfig config = test::small_gpt(f32, 1);
    config.vocab = Dim("vocab", words);
    config.d_model = Dim("d_model", 192);
    const ir::Graph step = training_step(models::loss_graph(config).graph, "loss", AdamW{}, {.precision = bf16});
    return explained(ir::run_pipeline(step, ir::default_pipeline()).graph, true);
  };
  // Rows of 1001 words are padded; rows of 201 are short.
  for (const std::int64_t words : {1000, 1001}) CHECK_THAT(told_of(words), !Contains("is computed where it is read"));
  for (const std::int64_t words : {1000, 1001}) CHECK_THAT(told_of(words), !Contains("chunks of 16 bytes"));
  const std::string text = told_of(201);
  INFO(text);
  CHECK_THAT(text, Contains("contract logits gpt.cpp:") && Contains(": warpgroups, ") &&
                       Contains(" multiplications and additions, by k") &&
                       Contains("\n  not by warpgroups: its left operand is not in aligned chunks of 16 bytes"));
}
