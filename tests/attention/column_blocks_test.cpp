#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"

#include "runtime/compile.h"
#include "tests/attention/attention_check.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Backward passes over several blocks of columns: for such deep heads, a block has about 60 columns in f64 and 120
/// in f32.
using namespace lathe;
using namespace lathe::test;

namespace {

const Dim d{"d", 512};

struct Case {
  std::int64_t key_heads = 1;
  bool causal = false, window = false, shared_bias = false, dropout = false;
};

ir::Graph build(const Case& made, std::optional<DType> dtype) {
  const DType type = dtype.value_or(f32);
  Graph g{"blocks"};
  const Dim N{"N"}, S{"S"}, T{"T"}, h{"h", 2}, columns = made.causal || made.window ? S : T;
  const Tensor q = g.input("q", type, {N, h, S, d}), k = g.input("k", type, {N, made.key_heads, columns, d}),
               v = g.input("v", type, {N, made.key_heads, columns, d});
  std::vector<Tensor> wrt = {q, k, v};
  const auto heads = [&](const Tensor& x) { return made.key_heads == 1 ? x.repeat_interleave(2, 1) : x; };
  Tensor s = matmul(q, heads(k).transpose(-2, -1)) / 22.0;
  if (made.causal) s = s.masked_fill(~g.causal_mask(S, S), -std::numeric_limits<double>::infinity());
  if (made.window) s = s.masked_fill(g.causal_mask(S, S, -40), -1e9);
  if (made.shared_bias) {
    wrt.push_back(g.input("bias", type, {1, h, S, columns}));
    s = s + wrt.back();
  }
  Tensor w = s.softmax(-1);
  if (made.dropout) w = dropout(w, g.random_state(), 0.25);
  const Tensor y = matmul(w, heads(v));
  g.output("y", y);
  const std::vector<Tensor> gradients = grad((y * y).sum(), wrt);
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

void check(const Case& made, const DimBindings& sizes, bool thorough) {
  check_attention([&](std::optional<DType> dtype) { return build(made, dtype); },
                  {.sizes = {sizes, {{"N", 2}, {"S", 9}, {"T", 5}}}, .thorough = thorough});
}

}  // namespace

TEST_CASE("attention in blocks of columns: causal, shared keys") {
  check({.causal = true}, {{"N", 1}, {"S", 67}}, true);
}
TEST_CASE("attention in blocks of columns: sliding window") {
  check({.causal = true, .window = true}, {{"N", 1}, {"S", 131}}, false);
}
TEST_CASE("attention in blocks of columns: gradient of a shared bias, dropout, rows and columns that differ") {
  check({.key_heads = 2, .shared_bias = true, .dropout = true}, {{"N", 1}, {"S", 20}, {"T", 133}}, false);
}

TEST_CASE("attention in blocks of columns gives the same bits for any number of threads") {
  const ir::Graph graph = build({.causal = true}, f32);
  const Tensors arguments = random_arguments(graph, {{"N", 2}, {"S", 131}});
  const Target target = Target::named("host,+prefer-128-bit");  // short vectors compile faster
  KernelStore store;
  std::optional<Tensors> first;
  for (const int threads : {1, 2, 3, 7}) {
    Executable executable = compile(graph, {.target = target, .threads = threads, .cache = &store});
    const Tensors found = run_with_states(executable, arguments);
    if (!first) first = found;
    for (const auto& [name, value] : *first) CHECK(same_bits(found.at(name), value));
  }
}
