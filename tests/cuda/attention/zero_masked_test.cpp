#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"
#include "tests/cuda/attention/wgmma_cases.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention on GPUs with zero_masked: queries that see no key yield zeros.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr std::int64_t batches = 1, length = 70, depth = 16, seen_by_none = 3;

/// Outputs y and the gradients of a sum that needs y, so that the backward pass is a separate kernel. Sizes are
/// static if `known`, otherwise bound at run time.
ir::Graph attention_graph(DType dtype, bool known) {
  Graph g{"zero_masked"};
  const Dim S = known ? Dim("S", length) : Dim("S");
  const auto input = [&](const char* name) { return g.input(name, dtype, {batches, S, depth}); };
  const Tensor q = input("q"), k = input("k"), v = input("v"), weight = input("weight");
  const Tensor mask = g.input("mask", boolean, {S, S});
  const Tensor y = attention(q, k, v, mask, 0.25, false, true);
  g.output("y", y);
  const auto gradients = grad((y * y * weight).sum(), {q, k, v});
  for (const auto& [name, i] : {std::pair("dq", 0), std::pair("dk", 1), std::pair("dv", 2)})
    g.output(name, gradients[static_cast<std::size_t>(i)]);
  return g.finish();
}

/// Every third row sees no key, and one row sees only the last key.
Tensors arguments_of(const ir::Graph& graph) {
  Tensors arguments = random_arguments(graph, {{"S", length}});
  for (std::int64_t i = 0; i < length * length; ++i) {
    const std::int64_t row = i / length, column = i % length;
    arguments.at("mask").set(i,
                             row % seen_by_none != 1 && (row == 2 ? column == length - 1 : (row + column) % 5 != 0));
  }
  return arguments;
}

struct Sample {
  ir::Graph graph;
  ProgramInterpreter fused;
};

void check(const Sample& sample, const ProgramInterpreter::RunKernel& run) {
  const Tensors arguments = arguments_of(sample.graph), found = sample.fused.run(arguments, run);
  check_attention(sample.graph, arguments, sample.fused, run);
  for (const char* name : {"y", "dq"}) {
    INFO(name);
    int not_zero = 0;
    for (std::int64_t i = 0; i < batches * length * depth; ++i)
      not_zero += i / depth % length % seen_by_none == 1 && found.at(name).get(i) != 0;
    CHECK(not_zero == 0);
  }
}

}  // namespace

TEST_CASE("the CUDA text of attention with zeros for fully masked queries, forward and backward") {
  std::vector<Sample> samples;
  for (const bool known : {false, true}) {
    for (const DType dtype : {f64, f32, bf16}) {
      const ir::Graph graph = attention_graph(dtype, known);
      samples.push_back({graph, ProgramInterpreter(graph, lower_gpu, {.attention = AttentionFusion::required})});
    }
    const ir::Graph graph = attention_graph(bf16, known);
    samples.push_back({graph, fused_by_wgmma(graph)});
    CHECK(rows_by_wgmma(samples.back().fused));
  }
  std::vector<kernel::Kernel> kernels;
  for (const Sample& sample : samples)
    kernels.insert(kernels.end(), sample.fused.program().kernels.begin(), sample.fused.program().kernels.end());
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    INFO("sample " << i);
    check(samples[i],
          [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 2); });
  }
}

TEST_CASE(
    "a maximum that may be -inf gives NaN on GPUs for a row with no visible key, with any lower bound on the sum") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double least : {-infinity, std::numeric_limits<double>::lowest()}) {
    INFO(least);
    Graph g{"primitives"};
    const Dim S{"S"};
    const auto input = [&](const char* name) { return g.input(name, f64, {batches, S, depth}); };
    const Tensor q = input("q"), k = input("k"), v = input("v"), mask = g.input("mask", boolean, {S, S});
    const Tensor scores = where(mask, matmul(q, k.transpose(-2, -1)), -infinity);
    const Tensor e = exp(scores - maximum(scores.max({-1}, true), least));
    g.output("y", matmul(e / maximum(e.sum({-1}, true), 0.5), v));
    const ir::Graph graph = g.finish();
    const ProgramInterpreter fused(graph, lower_gpu, {.attention = AttentionFusion::required});
    const Tensors arguments = arguments_of(graph);
    const HostTensor found = fused.run(arguments).at("y");
    CHECK(error_of(found, ir::interpret(graph, arguments).at("y")) <= 1e-11);
    CHECK(std::isnan(found.get(depth)) == std::isinf(least));  // the second row, which sees no key
  }
}
