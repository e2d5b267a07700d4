#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "runtime/compile.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Queries that see no key: NaN, or zeros with `zero_masked`.
using namespace lathe;
using namespace lathe::test;

namespace {

struct Case {
  DType dtype = f32;
  bool causal = false;
  bool adds_mask = false;  ///< adds -inf to the scores of masked keys
  bool zero_masked = true;
  bool known = false;  ///< sizes are static
};

constexpr std::int64_t batches = 2, depth = 32, seen_by_all = 3;

/// y and the gradients of a weighted sum of y.
ir::Graph attention_graph(const Case& c, std::int64_t length) {
  Graph g{"masked_rows"};
  const Dim S = c.known ? Dim("S", length) : Dim("S");
  const auto input = [&](const char* name) { return g.input(name, c.dtype, {batches, S, depth}); };
  const Tensor q = input("q"), k = input("k"), v = input("v"), weight = input("weight");
  const Tensor mask = g.input("mask", c.adds_mask ? c.dtype : boolean, {batches, S, S});
  const Tensor y = attention(q, k, v, mask, 1 / std::sqrt(static_cast<double>(depth)), c.causal, c.zero_masked);
  g.output("y", y);
  const auto gradients = grad((y * weight).sum(), {q, k, v});
  for (const auto& [name, i] : {std::pair("dq", 0), std::pair("dk", 1), std::pair("dv", 2)})
    g.output(name, gradients[static_cast<std::size_t>(i)]);
  return g.finish();
}

/// Every third row sees no key; a causal mask hides all keys of a few more.
bool sees(const Case& c, std::int64_t row, std::int64_t column) {
  if (row % seen_by_all == 1) return false;
  if (c.causal && (column > row || row < 8)) return column > row;
  return (row + column) % 5 != 0;
}
bool sees_none(const Case& c, std::int64_t row, std::int64_t length) {
  for (std::int64_t column = 0; column < length; ++column)
    if (sees(c, row, column) && !(c.causal && column > row)) return false;
  return true;
}

Tensors arguments_of(const ir::Graph& graph, const Case& c, std::int64_t length) {
  Tensors arguments = random_arguments(graph, {{"S", length}});
  HostTensor& mask = arguments.at("mask");
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const bool seen = sees(c, i / length % length, i % length);
    mask.set(i, c.adds_mask ? (seen ? 0.0 : -INFINITY) : (seen ? 1.0 : 0.0));
  }
  return arguments;
}

/// Checks that exactly the masked rows and their gradients are zeros, and that all results agree with the
/// interpreter.
void check_zeros(const Case& c, std::int64_t length, const Tensors& found, const Tensors& expected) {
  const double tolerance = c.dtype == f64 ? 1e-12 : c.dtype == bf16 ? 0.04 : 2e-6;
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(error_of(found.at(name).cast(f64), value.cast(f64)) <= tolerance);
  }
  const auto is_zero = [&](const char* name, std::int64_t row) {
    for (std::int64_t d = 0; d < depth; ++d)
      if (found.at(name).get(row * depth + d) != 0) return false;
    return true;
  };
  int masked = 0, wrong = 0;
  for (std::int64_t row = 0; row < batches * length; ++row) {
    const bool none = sees_none(c, row % length, length);
    masked += none;
    wrong += is_zero("y", row) != none || (none && !is_zero("dq", row));
  }
  CHECK(masked >= batches * (length / seen_by_all));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("queries with no visible key give zeros and no gradient, fused and unfused") {
  KernelStore store;
  constexpr std::int64_t length = 40;
  const auto check = [&](const Case& c) {
    INFO(name(c.dtype) << ", causal " << c.causal << ", adds " << c.adds_mask << ", known " << c.known);
    const ir::Graph graph = attention_graph(c, length);
    const Tensors arguments = arguments_of(graph, c, length), expected = ir::interpret(graph, arguments);
    for (const AttentionFusion fusion : {AttentionFusion::required, AttentionFusion::off}) {
      Executable executable = compile(graph, {.threads = 2, .cache = &store, .lower = {.attention = fusion}});
      check_zeros(c, length, executable.run(arguments), expected);
    }
  };
  for (const DType dtype : {f64, f32, bf16})
    for (const bool causal : {false, true})
      for (const bool adds : {false, true}) check({.dtype = dtype, .causal = causal, .adds_mask = adds});
  for (const DType dtype : {f64, f32, bf16}) check({.dtype = dtype, .causal = true, .known = true});
}

TEST_CASE("queries that see no key give zeros: kernel interpreter, with pairs and tiles") {
  constexpr std::int64_t length = 165;
  for (const DType dtype : {f32, bf16}) {
    const Case c{.dtype = dtype, .causal = dtype == f32, .known = true};
    const ir::Graph graph = attention_graph(c, length);
    const Tensors arguments = arguments_of(graph, c, length), expected = ir::interpret(graph, arguments);
    for (const CpuInfo& target :
         {cpu_with(128), cpu_with(512, {.dot_pairs = true}), cpu_with(512, {.tiles = true})}) {
      const auto lowered = [&](const ir::Graph& passed, const LowerOptions& options) {
        return lower_cpu(passed, target, options);
      };
      const ProgramInterpreter program(graph, lowered, {.attention = AttentionFusion::required});
      check_zeros(c, length, program.run(arguments), expected);
    }
  }
}

TEST_CASE("rows with a visible key have the same bits whether fully masked rows give zeros or NaN") {
  constexpr std::int64_t length = 40;
  for (const DType dtype : {f32, bf16}) {
    Case c{.dtype = dtype, .zero_masked = false};
    const ir::Graph plain = attention_graph(c, length);
    const Tensors arguments = arguments_of(plain, c, length);
    const auto run = [&](const ir::Graph& graph) {
      return compile(graph,
                     {.threads = 1, .cache = shared_kernels(), .lower = {.attention = AttentionFusion::required}})
          .run(arguments)
          .at("y");
    };
    c.zero_masked = true;
    const HostTensor with = run(attention_graph(c, length)), without = run(plain);
    for (std::int64_t i = 0; i < with.numel(); ++i) {
      const bool masked = sees_none(c, i / depth % length, length);
      REQUIRE((masked ? std::isnan(without.get(i)) && with.get(i) == 0 : with.get(i) == without.get(i)));
    }
  }
}
