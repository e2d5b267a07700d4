#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/nn/attention/attention.h"
#include "frontend/ops/ops.h"
#include "passes/explain/explain_attention.h"
#include "passes/lowering/lower.h"
#include "runtime/compile.h"
#include "tests/attention/attention_check.h"
#include "tests/attention/attention_search.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention of one query, or of the few queries that share their keys, as in a decoding step.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

enum class Mask { none, positions, ragged, window, bias, literal_number, zero_masked };

struct Case {
  const char* name;
  std::int64_t kv = 2, groups = 1;
  Mask mask = Mask::none;
  DType dtype = f32;
  std::int64_t d = 8, e = 8;  ///< of keys and of values
  std::optional<std::int64_t> batch = {};
  bool repeated = false;  ///< the key heads are repeated, instead of viewing the queries in groups
  double soft_cap = 0;
  bool returned = false;         ///< the weights are outputs too
  bool keys_transposed = false;  ///< stored as [B, kv, d, S]
  std::int64_t queries = 1;
};

/// A bool or number that broadcasts to [B, kv, groups, queries, S] from the right.
Tensor masked(const Case& c, Graph& g, const Dim& B, const Dim& S, const Tensor& scores) {
  const Tensor column = g.arange(S, i64);
  const auto position = [&](const Shape& shape) { return g.input("position", i64, shape); };
  switch (c.mask) {
    case Mask::none: return scores;
    case Mask::positions: return scores.masked_fill(~(column <= position({1})), minus_infinity);
    case Mask::ragged: {
      Tensor at = position({B, 1, 1, 1});
      if (scores.shape().rank() == 5) at = at.unsqueeze(1);
      return scores.masked_fill(~(column <= at), minus_infinity);
    }
    case Mask::window: {
      const Tensor at = position({1});
      return scores.masked_fill(~((column <= at) & (column > at - 5)), -1e9);
    }
    case Mask::bias: return scores + g.input("bias", c.dtype, {S});
    case Mask::literal_number: return scores.masked_fill(column == 3, -1e-20);
    case Mask::zero_masked: return scores.masked_fill(g.input("hidden", boolean, {S}), minus_infinity);
  }
  return scores;
}

Tensor weights_of(const Case& c, const Tensor& scores) { return softmax(scores, -1, c.mask == Mask::zero_masked); }

ir::Graph attention(const Case& c, std::optional<DType> dtype = {}) {
  Case own = c;
  own.dtype = dtype.value_or(c.dtype);
  Graph g{"decode"};
  const Dim B = c.batch ? Dim("B", *c.batch) : Dim("B"), S{"S"}, kv{"kv", c.kv}, r{"groups", c.groups}, d{"d", c.d},
            e{"e", c.e}, T{"T", c.queries};
  const Tensor q = g.input("q", own.dtype, {B, kv * r, T, d});
  const Tensor k = c.keys_transposed ? g.input("k", own.dtype, {B, kv, d, S}).transpose(-2, -1)
                                     : g.input("k", own.dtype, {B, kv, S, d});
  const Tensor v = g.input("v", own.dtype, {B, kv, S, e});
  const bool grouped = c.groups > 1 && !c.repeated;
  const auto heads = [&](const Tensor& x) {
    return c.groups == 1 ? x : c.repeated ? nn::repeat_heads(x, r) : x.unsqueeze(2);
  };
  const Tensor queries = grouped ? q.view({B, kv, r, T, d}) : q;
  Tensor scores = matmul(queries, heads(k).transpose(-2, -1)) * (1 / std::sqrt(static_cast<double>(c.d)));
  if (c.soft_cap != 0) scores = tanh(scores / c.soft_cap) * c.soft_cap;
  const Tensor w = weights_of(c, masked(own, g, B, S, scores));
  if (c.returned) g.output("weights", w);
  const Tensor y = matmul(w, heads(v));  // [B, h, T, e] or [B, kv, groups, T, e]
  const Tensor joined = grouped ? y.view({B, kv * r, T, e}) : y;
  g.output("y", joined.transpose(1, 2).contiguous().view({B, T, kv * r * e}));
  return g.finish();
}

const std::vector<Case> cases = {
    {.name = "one query"},
    {.name = "one query of one sequence", .batch = 1},
    {.name = "one query of one sequence and head: many parts", .kv = 1, .d = 64, .e = 64, .batch = 1},
    {.name = "positions", .mask = Mask::positions, .batch = 1},
    {.name = "ragged positions", .mask = Mask::ragged},
    {.name = "ragged positions, some sequences", .kv = 1, .mask = Mask::ragged, .batch = 2},
    {.name = "a window of a finite number", .mask = Mask::window, .batch = 1},
    {.name = "a bias", .mask = Mask::bias, .batch = 1},
    {.name = "a mask that masks nothing", .mask = Mask::literal_number},
    {.name = "zero where all is masked", .mask = Mask::zero_masked, .batch = 1},
    {.name = "a soft cap", .mask = Mask::positions, .batch = 1, .soft_cap = 2},
    {.name = "groups, repeated", .groups = 3, .mask = Mask::ragged, .repeated = true},
    {.name = "groups, in parts", .groups = 4, .mask = Mask::ragged, .batch = 1},
    {.name = "groups of 2", .groups = 2, .mask = Mask::positions},
    {.name = "groups of 8, deep", .kv = 1, .groups = 8, .mask = Mask::ragged, .d = 64, .e = 72, .batch = 1},
    {.name = "values deeper than keys", .d = 5, .e = 19},
    {.name = "values deeper than keys, in parts", .kv = 1, .d = 5, .e = 19, .batch = 1},
    {.name = "weights returned", .batch = 1, .returned = true},
    {.name = "keys transposed", .kv = 1, .d = 24, .batch = 1, .keys_transposed = true},
    {.name = "keys transposed, in groups", .groups = 2, .d = 24, .keys_transposed = true},
    {.name = "some queries", .mask = Mask::ragged, .queries = 3},
    {.name = "bf16", .kv = 1, .mask = Mask::ragged, .dtype = bf16, .d = 32, .e = 32, .batch = 1},
    {.name = "bf16 in groups", .groups = 4, .mask = Mask::positions, .dtype = bf16, .d = 32, .e = 32},
    {.name = "f16", .mask = Mask::positions, .dtype = f16, .batch = 1},
};

std::string not_fused(const ir::Graph& graph, const AttentionSearchOptions& options = {.decode = true}) {
  std::string text;
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  for (const AttentionReport& report :
       find_attention(recompute_attention(prepare_for_fusion(passed), options), options).reports)
    if (!report.fused) text += report.reason + "\n";
  return text;
}

std::string told(const ir::Graph& graph) {
  const Machine machine = cpu_machine(unnamed_cpu());
  return explain_attention(lower_graph(ir::run_pipeline(graph, ir::default_pipeline()).graph, machine), machine.info);
}

std::vector<DimBindings> lengths(const std::vector<std::int64_t>& all, std::int64_t batch = 2) {
  std::vector<DimBindings> found;
  for (const std::int64_t S : all) found.push_back({{"B", batch}, {"S", S}});
  return found;
}

}  // namespace

TEST_CASE("attention with one query, or few queries that share keys, is fused if the target has a kernel for it") {
  for (const Case& c : cases) {
    INFO(c.name);
    const ir::Graph graph = attention(c);
    CHECK(not_fused(graph) == "");
    if (c.groups < 8) CHECK(not_fused(graph, {}) != "");
    const std::string text = told(graph);
    CHECK_THAT(text, Catch::Matchers::Contains("decode_attention: fma"));
  }
}

TEST_CASE("decode attention matches unfused attention, 1 of 2") {
  KernelStore store;
  for (std::size_t i = 0; i < cases.size(); i += 2) {
    INFO(cases[i].name);
    check_attention([&](std::optional<DType> dtype) { return attention(cases[i], dtype); },
                    {.sizes = lengths({0, 1, 2, 17, 300}), .store = &store});
  }
}

TEST_CASE("decode attention matches unfused attention, 2 of 2") {
  KernelStore store;
  for (std::size_t i = 1; i < cases.size(); i += 2) {
    INFO(cases[i].name);
    check_attention([&](std::optional<DType> dtype) { return attention(cases[i], dtype); },
                    {.sizes = lengths({0, 1, 2, 17, 300}), .store = &store});
  }
}

TEST_CASE("decode attention in the kernel interpreter, on several targets") {
  for (const Case& c : cases) {
    INFO(c.name);
    const ir::Graph graph = attention(c);
    for (const CpuInfo& target : {cpu_with(128), cpu_with(256), cpu_with(512, {.dot_pairs = true}),
                                  cpu_with(512, {.slow_last_level = true}), cpu_with(512, {.tiles = true})}) {
      const auto lowered = [&](const ir::Graph& passed, const LowerOptions& options) {
        return lower_cpu(passed, target, options);
      };
      const ProgramInterpreter program(graph, lowered, {.attention = AttentionFusion::required});
      for (const std::int64_t S : {0, 1, 70, 133}) {
        const Tensors arguments = random_arguments(graph, {{"B", 2}, {"S", S}});
        const Tensors found = program.run(arguments);
        for (const auto& [name, value] : ir::interpret(graph, arguments, {.round = false}))
          CHECK(error_of(found.at(name).cast(f64), value.cast(f64)) <= (c.dtype == f32 ? 1e-5 : 0.03));
      }
    }
  }
}

TEST_CASE("a query with no visible key gives NaN, or zero if requested, fused and unfused") {
  for (const Mask mask : {Mask::positions, Mask::zero_masked})
    for (const std::int64_t kv : {1, 16}) {
      INFO(kv << " heads, zero " << (mask == Mask::zero_masked));
      const ir::Graph graph = attention({.name = "", .kv = kv, .mask = mask, .batch = 1});
      Tensors arguments = random_arguments(graph, {{"S", 300}});
      if (mask == Mask::positions)
        arguments.at("position").set_int(0, -1);
      else
        for (std::int64_t i = 0; i < 300; ++i) arguments.at("hidden").set_int(i, 1);
      for (const AttentionFusion fusion : {AttentionFusion::required, AttentionFusion::off}) {
        Executable executable =
            compile(graph, {.threads = 2, .cache = test::shared_kernels(), .lower = {.attention = fusion}});
        const HostTensor y = executable.run(arguments).at("y");
        int wrong = 0;
        for (std::int64_t i = 0; i < y.numel(); ++i)
          wrong += mask == Mask::positions ? !std::isnan(y.get(i)) : y.get(i) != 0;
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("fully masked column splits do not contribute") {
  const ir::Graph graph = attention({.name = "", .kv = 1, .mask = Mask::positions, .batch = 1});
  Tensors arguments = random_arguments(graph, {{"S", 2000}});
  Executable executable = compile(
      graph, {.threads = 2, .cache = test::shared_kernels(), .lower = {.attention = AttentionFusion::required}});
  for (const std::int64_t position : {0, 3, 300, 1999}) {
    arguments.at("position").set_int(0, position);
    const HostTensor expected = ir::interpret(graph, arguments).at("y");
    CHECK(error_of(executable.run(arguments).at("y"), expected) <= 1e-6);
  }
}

TEST_CASE("decode attention gives the same bits for any number of threads") {
  for (const Case& c : {Case{.name = "in parts", .kv = 1, .mask = Mask::positions, .d = 64, .e = 64, .batch = 1},
                        Case{.name = "whole", .kv = 16, .mask = Mask::positions, .batch = 1},
                        Case{.name = "groups", .kv = 2, .groups = 4, .mask = Mask::ragged, .batch = 3}}) {
    INFO(c.name);
    const ir::Graph graph = attention(c);
    Tensors arguments = random_arguments(graph, {{"S", 700}});
    HostTensor& position = arguments.at("position");
    for (std::int64_t i = 0; i < position.numel(); ++i) position.set_int(i, 650 - 40 * i);
    std::optional<HostTensor> first;
    for (const int threads : {1, 2, 3, 7}) {
      Executable executable = compile(graph, {.threads = threads, .cache = test::shared_kernels()});
      const HostTensor found = executable.run(arguments).at("y");
      if (!first) first = found;
      CHECK(same_bits(*first, found));
    }
  }
}

TEST_CASE("attention with one query and a gradient is not fused and the reason is reported") {
  Graph g{"pooled"};
  const Dim B{"B"}, S{"S"};
  const Tensor q = g.parameter("q", f32, {1, 1, 8}), x = g.input("x", f32, {B, S, 8});
  const Tensor w = softmax(matmul(q, x.transpose(-2, -1)), -1);  // [B, 1, S]
  const Tensor y = matmul(w, x);
  g.output("dq", grad((y * y).sum(), {q})[0]);
  const ir::Graph graph = g.finish();
  CHECK_THAT(not_fused(graph), Catch::Matchers::Contains("1 row is too few to gain from it"));
  Executable executable = compile(graph, {.threads = 2, .cache = test::shared_kernels()});
  const Tensors arguments = random_arguments(graph, {{"B", 3}, {"S", 20}});
  const HostTensor expected = ir::interpret(graph, arguments).at("dq");
  CHECK(error_of(run_with_states(executable, arguments).at("dq"), expected) <= 1e-5);
}
