#include <catch2/catch.hpp>
#include <limits>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "runtime/compile.h"
#include "tests/attention/attention_search.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

using namespace lathe;
using namespace lathe::test;

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// [N, h, S, S] scores and [N, h, S, d] values, from which almost-attentions are built.
struct Parts {
  Graph& g;
  Dim N, h, S, d;
  Tensor s, v;
};
struct NearMiss {
  std::string name;
  bool must_not_fuse;  ///< no softmax in it may be reported as fused
  std::function<Tensor(const Parts&)> make;
};

Tensor weights(const Parts& p) { return p.s.softmax(-1); }

std::vector<NearMiss> other_dims() {
  return {
      {"softmax over the rows", false, [](const Parts& p) { return matmul(p.s.softmax(-2), p.v); }},
      {"softmax over the heads", true, [](const Parts& p) { return matmul(p.s.softmax(1), p.v); }},
      {"softmax over the batch", true, [](const Parts& p) { return matmul(p.s.softmax(0), p.v); }},
      {"max over the rows", false,
       [](const Parts& p) {
         const Tensor e = exp(p.s - p.s.max(-2, true));
         return matmul(e / e.sum(-1, true), p.v);
       }},
      {"sum over rows and columns", false,
       [](const Parts& p) { return matmul(exp(p.s) / exp(p.s).sum({-2, -1}, true), p.v); }},
      {"a second softmax over the rows", false, [](const Parts& p) { return matmul(weights(p).softmax(-2), p.v); }},
      {"a second softmax over the columns", false,
       [](const Parts& p) { return matmul(weights(p).softmax(-1), p.v); }},
      {"the mean of the rows taken away", false,
       [](const Parts& p) { return matmul(weights(p) - weights(p).mean(-2, true), p.v); }},
      {"weights times what the columns receive", false,
       [](const Parts& p) { return matmul(weights(p) * weights(p).sum(-2, true), p.v); }},
      {"product summed over rows and columns", false,
       [](const Parts& p) { return einsum("nhqk,nhkd->nhd", {weights(p), p.v}); }},
      {"sum over rows and columns, no product", true,
       [](const Parts& p) { return (weights(p) * p.s).sum({-2, -1}); }},
      {"heads that talk", false,
       [](const Parts& p) {
         const Tensor mix = p.g.literal({p.h, p.h}, {1, 0.5, -0.5, 2}, p.s.dtype());
         return matmul(einsum("nhqk,hg->ngqk", {weights(p), mix}), p.v);
       }},
      {"batches that meet", false, [](const Parts& p) { return einsum("nhqk,mhkd->nmhqd", {weights(p), p.v}); }},
      {"argmax between", true, [](const Parts& p) { return matmul(one_hot(p.s.argmax(-1), p.S, p.s.dtype()), p.v); }},
  };
}

std::vector<NearMiss> other_reads() {
  return {
      {"columns but the first", false,
       [](const Parts& p) { return matmul(weights(p).slice(-1, 1, p.S), p.v.slice(-2, 1, p.S)); }},
      {"the first three columns", false,
       [](const Parts& p) { return matmul(weights(p).slice(-1, 0, 3), p.v.slice(-2, 0, 3)); }},
      {"rows but the first", false, [](const Parts& p) { return matmul(weights(p).slice(-2, 1, p.S), p.v); }},
      {"heads joined with rows", false,
       [](const Parts& p) { return matmul(weights(p).reshape({p.N, p.h * p.S, p.S}), p.v.select(1, 0)); }},
      {"rows joined with columns", false,
       [](const Parts& p) {
         const Tensor flat = weights(p).reshape({p.N, p.h, p.S * p.S}) * 2.0;
         return matmul(flat.reshape({p.N, p.h, p.S, p.S}), p.v);
       }},
      {"the weights against themselves", false,
       [](const Parts& p) { return matmul(weights(p), weights(p).transpose(-2, -1)); }},
      {"the weights squared", false, [](const Parts& p) { return matmul(matmul(weights(p), weights(p)), p.v); }},
      {"the weights made symmetric", false,
       [](const Parts& p) { return matmul(weights(p) + weights(p).transpose(-2, -1), p.v); }},
      {"the scores made symmetric", false,
       [](const Parts& p) { return matmul((p.s + p.s.transpose(-2, -1)).softmax(-1), p.v); }},
      {"values that depend on the result", false,
       [](const Parts& p) { return matmul(weights(p), matmul(weights(p), p.v)); }},
      {"scores that depend on the result", false,
       [](const Parts& p) {
         const Tensor y = matmul(weights(p), p.v);
         return matmul((p.s + matmul(y, y.transpose(-2, -1))).softmax(-1), p.v);
       }},
      {"weights cumulated", false,
       [](const Parts& p) {
         const Tensor upto = p.g.causal_mask(p.S, p.S).transpose(0, 1).to(p.s.dtype());
         return matmul(matmul(weights(p), upto), p.v);
       }},
      {"columns twice", false,
       [](const Parts& p) { return matmul(concat({weights(p), weights(p)}, -1), concat({p.v, p.v}, -2)); }},
      {"columns padded", false, [](const Parts& p) { return matmul(pad(weights(p), -1, 1, 0), pad(p.v, -2, 1, 0)); }},
      {"columns rolled", false,
       [](const Parts& p) {
         const Tensor w = weights(p);
         return matmul(concat({w.slice(-1, 1, p.S), w.slice(-1, 0, 1)}, -1), p.v);
       }},
      {"columns gathered", false,
       [](const Parts& p) { return matmul(gather(weights(p), p.g.arange(p.S, i64), 3), p.v); }},
      {"the diagonal", true, [](const Parts& p) { return weights(p).diagonal(2, 3).unsqueeze(-1) * p.v; }},
  };
}

/// Masks of the scores: the near misses are repeated with each one.
using MaskOf = std::function<Tensor(const Parts&)>;
std::vector<MaskOf> masks() {
  return {
      [](const Parts& p) { return p.s; },
      [](const Parts& p) { return p.s.masked_fill(~p.g.causal_mask(p.S, p.S), -1e9); },
      [](const Parts& p) { return where(p.g.causal_mask(p.S, p.S), p.s, minus_infinity); },
      [](const Parts& p) { return p.s.masked_fill(p.g.input("mask", i64, {p.N, 1, 1, p.S}) == 0, -1e-20) * 0.5; }};
}

ir::Graph build(const NearMiss& miss, const MaskOf& mask) {
  Graph g{"near_miss"};
  const Dim N{"N"}, h{"h", 2}, S{"S"}, d{"d", 3};
  const Tensor q = g.input("q", f64, {N, h, S, d}), k = g.input("k", f64, {N, h, S, d}),
               v = g.input("v", f64, {N, h, S, d});
  Parts parts{g, N, h, S, d, matmul(q, k.transpose(-2, -1)), v};
  parts.s = mask(parts);
  const Tensor y = miss.make(parts);
  g.output("y", y);
  const std::vector<Tensor> gradients = grad((y * y).sum() + (q * k * v).sum(), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

bool fuses_some(const ir::Graph& graph) {
  const auto reports = find_attention(prepared(graph)).reports;
  return std::any_of(reports.begin(), reports.end(), [](const AttentionReport& r) { return r.fused; });
}

void check(const std::vector<NearMiss>& all) {
  KernelStore store;
  std::size_t count = 0;
  for (const NearMiss& miss : all)
    for (const MaskOf& mask : masks()) {
      INFO(miss.name << ", mask " << count % masks().size());
      const ir::Graph graph = build(miss, mask);
      if (miss.must_not_fuse) CHECK_FALSE(fuses_some(graph));
      Executable executable = compile(graph, {.threads = 2, .cache = &store});
      const Tensors arguments =
          random_arguments(graph, {{"N", 2}, {"S", count % 3 ? 5 : 17}}, static_cast<unsigned>(count));
      const Tensors expected = ir::interpret(graph, arguments), found = run_with_states(executable, arguments);
      for (const auto& [name, value] : expected) {
        INFO(name);
        CHECK(error_of(found.at(name), value) <= 1e-11);
      }
      ++count;
    }
}

}  // namespace

TEST_CASE("near misses: other dims") { check(other_dims()); }
TEST_CASE("near misses: other reads") { check(other_reads()); }

TEST_CASE("there are at least a hundred near misses") {
  CHECK((other_dims().size() + other_reads().size()) * masks().size() >= 100);
}

TEST_CASE("fused attention keeps the semantics of every mask fill value") {
  KernelStore store;
  const double infinity = -minus_infinity, nan = std::numeric_limits<double>::quiet_NaN();
  for (const double fill : {minus_infinity, -1e9, -1e20, -1e-20, 0.0, -0.0, infinity, nan}) {
    Graph g{"edges"};
    const Dim N{"N"}, S{"S"}, d{"d", 4};
    const Tensor q = g.input("q", f64, {N, S, d}), k = g.input("k", f64, {N, S, d}), v = g.input("v", f64, {N, S, d}),
                 keep = g.input("keep", boolean, {N, S, S});
    const Tensor y = matmul(where(keep, matmul(q, k.transpose(-2, -1)), fill).softmax(-1), v);
    g.output("y", y);
    const auto gradients = grad((y * y).sum(), {q, k, v});
    for (std::size_t i = 0; i < 3; ++i) g.output("grad" + std::to_string(i), gradients[i]);
    const ir::Graph graph = g.finish();
    CHECK(unfused(graph) == "");
    Executable executable = compile(graph, {.threads = 2, .cache = &store});
    for (const double poison : {1.0, nan, infinity, minus_infinity, -0.0})
      for (const char* where_it_is : {"k", "v", "q"}) {
        Tensors arguments = random_arguments(graph, {{"N", 2}, {"S", 9}});
        // Row 1 is fully masked; column 3, which holds the poison, is masked for every row.
        for (std::int64_t i = 0; i < 9; ++i) {
          arguments.at("keep").set_int(9 + i, 0);
          arguments.at("keep").set_int(i * 9 + 3, 0);
        }
        arguments.at(where_it_is).set(3 * 4 + 1, poison);
        INFO("fill " << fill << ", " << poison << " in " << where_it_is);
        const Tensors expected = ir::interpret(graph, arguments), found = executable.run(arguments);
        for (const auto& [name, value] : expected) {
          INFO(name);
          CHECK(error_of(found.at(name), value) <= 1e-11);
        }
      }
  }
}
