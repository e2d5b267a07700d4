#include <catch2/catch.hpp>

#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/printer.h"
#include "passes/explain/explain_attention.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/compile.h"
#include "tests/attention/attention_check.h"
#include "tests/attention/variants/variant.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention whose matmuls use tile_mma, in bf16 or in f32 as split bf16. The kernel interpreter runs the kernels on
/// every machine; compiled code uses them if the host has AMX.
using namespace lathe;
using namespace lathe::test;

namespace {

const CpuInfo with_tiles = cpu_with(512, {.dot_pairs = true, .tiles = true});

std::string code(const ir::Graph& graph, const CpuInfo& target = with_tiles) {
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  std::string text;
  for (const kernel::Kernel& kernel : lower_cpu(passed, target, {.attention = AttentionFusion::required}).kernels)
    text += kernel::canonical_text(kernel);
  return text;
}

/// Whether a variable gets the result of an fma, as the sums of matmuls do.
bool sums_by_fma(const std::string& code) {
  for (auto at = code.find("= fma %"); at != std::string::npos; at = code.find("= fma %", at + 1))
    if (code.find("set ", at) == code.find_first_not_of(" \n", code.find('\n', at))) return true;
  return false;
}

void check_kernels(const ir::Graph& graph, DType dtype, const std::vector<DimBindings>& sizes) {
  const auto lowered = [](const ir::Graph& g, const LowerOptions& options) {
    return lower_cpu(g, with_tiles, options);
  };
  const ProgramInterpreter program(graph, lowered, {.attention = AttentionFusion::required});
  for (const DimBindings& dims : sizes) {
    INFO(name(dtype) << ' ' << to_string(dims));
    const Tensors arguments = random_arguments(graph, dims), found = program.run(arguments);
    const Tensors expected = ir::interpret(graph, arguments, {.round = dtype == f32});
    for (const auto& [name, value] : expected) {
      INFO(name);
      CHECK(error_of(found.at(name).cast(f64), value.cast(f64)) <= (dtype == f32 ? 2e-5 : 1.6e-2));
    }
  }
}

void check_kernels(const PatternVariant& variant, const std::vector<DimBindings>& sizes) {
  INFO(variant.name());
  for (const DType dtype : {f32, bf16}) check_kernels(build(variant, dtype), dtype, sizes);
}

}  // namespace

TEST_CASE("explain reports the multiply instructions of an attention kernel") {
  using Catch::Matchers::Contains;
  const auto told = [](DType dtype, const CpuInfo& target) {
    const ir::Graph graph = build({.mask = Mask::causal_fill, .depth = 32}, dtype);
    const Machine machine = cpu_machine(target);
    const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
    return explain_attention(lower_graph(passed, machine), machine.info);
  };
  CHECK_THAT(told(f32, with_tiles), Contains("by k0_attention: tile_mma, f32 as split bf16\n"));
  CHECK_THAT(told(bf16, with_tiles), Contains("_attention: tile_mma\n"));
  CHECK_THAT(told(bf16, cpu_with(512, {.dot_pairs = true})), Contains("_attention: dot products of pairs of bf16\n"));
  CHECK_THAT(told(f32, unnamed_cpu()), Contains("_attention: fma\n"));
}

TEST_CASE("fused f32 attention multiplies bf16 terms on CPUs with tiles") {
  using Catch::Matchers::Contains;
  const PatternVariant deep{.mask = Mask::causal_fill, .depth = 32};
  CHECK_THAT(code(build(deep)), Contains("split bf16"));
  CHECK(sums_by_fma(code(build(deep))));  // for sums that overflow as split bf16
  CHECK(sums_by_fma(code(build(deep), unnamed_cpu())));
  CHECK_THAT(code(build(deep), unnamed_cpu()), !Contains("tile_mma"));
  CHECK_THAT(code(build(deep), cpu_with(256, {.tiles = true})), !Contains("tile_mma"));
  CHECK_THAT(code(build({.depth = 31})), !Contains("tile_mma"));
  CHECK_THAT(code(build({.extra = Extra::values_wider, .depth = 33})), Contains("split bf16"));
}

TEST_CASE("fused bf16 attention uses tiles on CPUs that have them") {
  using Catch::Matchers::Contains;
  const PatternVariant deep{.mask = Mask::causal_fill, .depth = 32};
  CHECK_THAT(code(build(deep, bf16)), Contains("tile_mma") && !Contains("split bf16") && !Contains("dot_pairs"));
  CHECK_FALSE(sums_by_fma(code(build(deep, bf16))));
  CHECK_THAT(code(build(deep, bf16), cpu_with(512, {.dot_pairs = true})), !Contains("tile_mma"));
  for (const DType dtype : {f64, f16}) CHECK_THAT(code(build(deep, dtype)), !Contains("tile_mma"));
  CHECK_THAT(code(build({.depth = 15}, bf16)), !Contains("tile_mma"));
  CHECK_THAT(code(build({.depth = 16}, bf16)), Contains("tile_mma"));
  const auto tiles = [&](std::int64_t rows, std::int64_t columns) {
    const ir::Graph late = build({.extra = Extra::cross, .depth = 64}, bf16);
    return code(ir::with_sizes(late, {{"S", rows}, {"T", columns}})).find("tile_mma") != std::string::npos;
  };
  CHECK(tiles(17, 17));
  CHECK(!tiles(16, 17));
  CHECK(!tiles(17, 16));
}

TEST_CASE("fused attention with few rows or columns does not use bf16 terms") {
  const ir::Graph late = build({.extra = Extra::cross, .depth = 64});
  const auto terms = [&](std::int64_t rows, std::int64_t columns) {
    const ir::Graph graph = ir::with_sizes(late, {{"S", rows}, {"T", columns}});
    return code(graph).find("split bf16") != std::string::npos;
  };
  CHECK(terms(128, 160));
  CHECK(!terms(127, 160));
  CHECK(!terms(128, 159));
  const auto masked = [&](Mask mask, std::int64_t length) {
    const ir::Graph graph = ir::with_sizes(build({.mask = mask, .depth = 64}), {{"S", length}});
    return code(graph).find("split bf16") != std::string::npos;
  };
  CHECK(masked(Mask::causal_fill, 320));
  CHECK(!masked(Mask::causal_fill, 319));
  CHECK(!masked(Mask::window, 1024));  // of a few columns
}

TEST_CASE("attention by tiles: ragged sizes, forward and backward") {
  check_kernels({.mask = Mask::causal_fill, .depth = 40}, {{{"N", 1}, {"S", 70}}, {{"N", 2}, {"S", 1}}});
  check_kernels({.extra = Extra::cross, .depth = 32}, {{{"N", 1}, {"S", 33}, {"T", 70}},
                                                       {{"N", 1}, {"S", 65}, {"T", 5}},
                                                       {{"N", 1}, {"S", 3}, {"T", 0}},
                                                       {{"N", 1}, {"S", 0}, {"T", 3}}});
  check_kernels({.mask = Mask::window, .depth = 24}, {{{"N", 1}, {"S", 100}}});
}

TEST_CASE("attention by tiles: operands in any layout") {
  for (const Layout layout : {Layout::split, Layout::keys_transposed, Layout::keys_first, Layout::rows_outside,
                              Layout::heads_last, Layout::grouped_expand, Layout::one_key_head})
    check_kernels({.layout = layout, .mask = Mask::causal_where, .depth = 32}, {{{"N", 1}, {"S", 37}}});
}

TEST_CASE("attention by tiles: masks and soft caps and dropout on the scores") {
  for (const PatternVariant& s : {PatternVariant{.mask = Mask::bias_shared, .depth = 32},
                                  {.mask = Mask::both_fill, .depth = 32},
                                  {.mask = Mask::soft_cap_causal, .depth = 32},
                                  {.extra = Extra::dropout, .depth = 32},
                                  {.extra = Extra::weights_returned, .depth = 32},
                                  {.normalisation = Normalisation::without_max, .depth = 32}})
    check_kernels(s, {{{"N", 2}, {"S", 35}}});
}

TEST_CASE("attention by tiles in blocks of columns") {
  check_kernels({.layout = Layout::batch_only, .mask = Mask::causal_fill, .depth = 480}, {{{"N", 1}, {"S", 97}}});
}

TEST_CASE("attention by tiles, compiled: matches unfused accuracy, same bits for any number of threads") {
  KernelStore store;
  for (const auto& [mask, own] : {std::pair{Mask::none, f32},
                                  {Mask::causal_fill, f32},
                                  {Mask::window, f32},
                                  {Mask::none, bf16},
                                  {Mask::causal_fill, bf16}}) {
    const PatternVariant variant{.mask = mask, .depth = 64};
    INFO(variant.name() << ' ' << name(own));
    const auto built = [&, dtype = own](std::optional<DType> other) { return build(variant, other.value_or(dtype)); };
    check_attention(built, {.sizes = {{{"N", 2}, {"S", 150}}, {{"N", 1}, {"S", 300}}}, .store = &store});
    const ir::Graph graph = built({});
    const Tensors arguments = random_arguments(graph, {{"N", 2}, {"S", 150}});
    std::optional<Tensors> first;
    for (const int threads : {1, 2, 3, 7, 16}) {
      Executable executable = compile(graph, {.threads = threads, .cache = &store});
      const Tensors found = run_with_states(executable, arguments);
      if (!first) first = found;
      for (const auto& [name, value] : *first) CHECK(same_bits(found.at(name), value));
    }
  }
}

TEST_CASE("attention by tiles: a second matmul of the scores") {
  for (const DType dtype : {f32, bf16}) {
    Graph g{"scores"};
    const Tensor q = g.input("q", dtype, {2, 40, 32}), k = g.input("k", dtype, {2, 50, 32}),
                 v = g.input("v", dtype, {2, 50, 32});
    const Tensor s = matmul(q * 0.2, k.transpose(-2, -1));
    g.output("y", matmul(s.softmax(-1), v));
    g.output("z", matmul(s, v));
    check_kernels(g.finish(), dtype, {{}});
  }
}
