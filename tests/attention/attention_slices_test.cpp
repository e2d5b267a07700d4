#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "passes/known_sizes.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "tests/attention/attention_check.h"
#include "tests/attention/spelling.h"
#include "tests/support/compare.h"
#include "tests/support/memory_store.h"
#include "tests/support/program_interpreter.h"
#include "tests/support/run_with_states.h"

/// Attention in f32 whose products are made by tile_mma. Kernels run in the kernel interpreter, on every machine;
/// compiled code has them where the host has AMX.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr VectorTarget with_tiles = {.bits = 512, .dot_pairs = true, .tiles = true};

std::string code(const ir::Graph& graph, const VectorTarget& target = with_tiles) {
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  std::string text;
  for (const kernel::Kernel& kernel : lower(passed, target, {.attention = AttentionFusion::required}).kernels)
    text += kernel::canonical_text(kernel);
  return text;
}

void check_kernels(const Spelling& spelling, const std::vector<DimBindings>& sizes) {
  INFO(spelling.name());
  const ir::Graph graph = build(spelling);
  const ProgramInterpreter program(graph, with_tiles);
  for (const DimBindings& dims : sizes) {
    INFO(to_string(dims));
    const ir::Tensors arguments = random_arguments(graph, dims);
    const ir::Tensors expected = ir::interpret(graph, arguments), found = program.run(arguments);
    for (const auto& [name, value] : expected) {
      INFO(name);
      CHECK(error_of(found.at(name), value) <= 2e-5);
    }
  }
}

}  // namespace

TEST_CASE("fused attention of f32 multiplies slices where the machine has tiles") {
  using Catch::Matchers::Contains;
  const Spelling deep{.mask = Mask::causal_fill, .depth = 32};
  CHECK_THAT(code(build(deep)), Contains("in slices") && !Contains("= fma %"));
  CHECK_THAT(code(build(deep), {512}), !Contains("tile_mma"));
  CHECK_THAT(code(build(deep), {.bits = 256, .tiles = true}), !Contains("tile_mma"));
  for (const DType dtype : {f64, bf16, f16}) CHECK_THAT(code(build(deep, dtype)), !Contains("in slices"));
  CHECK_THAT(code(build({.depth = 31})), !Contains("tile_mma"));
  CHECK_THAT(code(build({.extra = Extra::values_wider, .depth = 33})), Contains("in slices"));
}

TEST_CASE("fused attention of few rows or columns does without slices") {
  const ir::Graph late = build({.extra = Extra::cross, .depth = 64});
  const auto slices = [&](std::int64_t rows, std::int64_t columns) {
    const ir::Graph graph = ir::with_sizes(late, {{"S", rows}, {"T", columns}});
    return code(graph).find("in slices") != std::string::npos;
  };
  CHECK(slices(128, 160));
  CHECK(!slices(127, 160));
  CHECK(!slices(128, 159));
  const auto masked = [&](Mask mask, std::int64_t length) {
    const ir::Graph graph = ir::with_sizes(build({.mask = mask, .depth = 64}), {{"S", length}});
    return code(graph).find("in slices") != std::string::npos;
  };
  CHECK(masked(Mask::causal_fill, 320));
  CHECK(!masked(Mask::causal_fill, 319));
  CHECK(!masked(Mask::window, 1024));  // of a few columns
}

TEST_CASE("attention by slices: scores and sums of ragged sizes, forward and backward") {
  check_kernels({.mask = Mask::causal_fill, .depth = 40}, {{{"N", 1}, {"S", 70}}, {{"N", 2}, {"S", 1}}});
  check_kernels({.extra = Extra::cross, .depth = 32}, {{{"N", 1}, {"S", 33}, {"T", 70}},
                                                       {{"N", 1}, {"S", 65}, {"T", 5}},
                                                       {{"N", 1}, {"S", 3}, {"T", 0}},
                                                       {{"N", 1}, {"S", 0}, {"T", 3}}});
  check_kernels({.mask = Mask::window, .depth = 32}, {{{"N", 1}, {"S", 100}}});
}

TEST_CASE("attention by slices: operands in any layout") {
  for (const Layout layout : {Layout::split, Layout::keys_transposed, Layout::keys_first, Layout::rows_outside,
                              Layout::heads_last, Layout::grouped_expand, Layout::one_key_head})
    check_kernels({.layout = layout, .mask = Mask::causal_where, .depth = 32}, {{{"N", 1}, {"S", 37}}});
}

TEST_CASE("attention by slices: what becomes of a score") {
  for (const Spelling& s : {Spelling{.mask = Mask::bias_shared, .depth = 32},
                            {.mask = Mask::both_fill, .depth = 32},
                            {.mask = Mask::soft_cap_causal, .depth = 32},
                            {.extra = Extra::dropout, .depth = 32},
                            {.extra = Extra::weights_returned, .depth = 32},
                            {.normalisation = Normalisation::without_max, .depth = 32}})
    check_kernels(s, {{{"N", 2}, {"S", 35}}});
}

TEST_CASE("attention by slices in blocks of columns") {
  check_kernels({.layout = Layout::batch_only, .mask = Mask::causal_fill, .depth = 480}, {{{"N", 1}, {"S", 97}}});
}

TEST_CASE("attention by slices, compiled: as exact as products one by one, the same bits for any number of threads") {
  MemoryStore store;
  for (const Mask mask : {Mask::none, Mask::causal_fill, Mask::window}) {
    const Spelling spelling{.mask = mask, .depth = 64};
    check_attention([&](std::optional<DType> dtype) { return build(spelling, dtype); },
                    {.sizes = {{{"N", 2}, {"S", 150}}, {{"N", 1}, {"S", 300}}}, .store = &store});
    const ir::Graph graph = build(spelling);
    const ir::Tensors arguments = random_arguments(graph, {{"N", 2}, {"S", 150}});
    std::optional<ir::Tensors> first;
    for (const int threads : {1, 2, 3, 7, 16}) {
      Executable executable = compile(graph, {.threads = threads, .cache = &store});
      const ir::Tensors found = run_with_states(executable, arguments);
      if (!first) first = found;
      for (const auto& [name, value] : *first) CHECK(same_bits(found.at(name), value));
    }
  }
}
