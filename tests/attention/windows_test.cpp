#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Sliding windows in all variants: columns outside the window are skipped.
using namespace lathe;
using namespace lathe::test;

namespace {

using MakeMask = std::function<Tensor(Graph&, const Tensor& row, const Tensor& column)>;

constexpr std::int64_t length = 300, depth = 8;

/// Attention with this mask, and its gradients.
ir::Graph attention(const MakeMask& mask) {
  Graph g{"window"};
  const Shape shape{2, length, depth};
  const Tensor q = g.input("q", f32, shape), k = g.input("k", f32, shape), v = g.input("v", f32, shape);
  const Tensor row = g.arange(length, i64).unsqueeze(1), column = g.arange(length, i64).unsqueeze(0);
  const Tensor s = matmul(q, k.transpose(-2, -1)).masked_fill(~mask(g, row, column), -1e9);
  const Tensor y = matmul(s.softmax(-1), v);
  g.output("y", y);
  const auto gradients = grad((y * y).sum(), {q, k, v});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

/// FLOPs of two matmuls in which each row sees this number of columns.
std::int64_t forward_flops(std::int64_t columns) { return 2 * 2 * 2 * length * columns * depth; }

std::int64_t flops(const ProgramInterpreter& program) {
  std::int64_t sum = 0;
  for (const Launch& launch : program.program().launches) sum += launch.flops.value().value();
  return sum;
}

struct Case {
  const char* name;
  std::int64_t columns;
  MakeMask mask;
};

const std::vector<Case> cases = {
    {"a difference", 40, [](Graph&, auto& i, auto& j) { return (j <= i) & (i - j < 40); }},
    {"a difference, the other way", 40, [](Graph&, auto& i, auto& j) { return (j - i <= 0) & (j - i > -40); }},
    {"a shifted row", 40, [](Graph&, auto& i, auto& j) { return (j <= i) & (j > i - 40); }},
    {"not outside", 40, [](Graph&, auto& i, auto& j) { return ~((j > i) | (i - j >= 40)); }},
    {"views of one index", 40,
     [](Graph& g, auto&, auto&) {
       const Tensor index = g.arange(length, i64), i = index.view({1, length, 1}), j = index.view({1, 1, length});
       return (i >= j) & (i - j < 40);
     }},
    {"both sides by abs", 39, [](Graph&, auto& i, auto& j) { return abs(i - j) < 20; }},
    {"both sides by abs, negated", 39, [](Graph&, auto& i, auto& j) { return abs(j - i) <= 19; }},
    {"not outside of abs", 39, [](Graph&, auto& i, auto& j) { return ~(abs(i - j) >= 20); }},
    {"abs around a shifted diagonal", 39, [](Graph&, auto& i, auto& j) { return abs(i - j - 7) < 20; }},
};

}  // namespace

TEST_CASE("columns outside a sliding window are skipped for every way to write the window") {
  for (const Case& c : cases) {
    INFO(c.name);
    const ir::Graph graph = attention(c.mask);
    const ProgramInterpreter program(graph, cpu_with(256));
    CHECK(2 * flops(program) == 7 * forward_flops(c.columns));  // two matmuls forward, five backward
    const Tensors arguments = random_arguments(graph);
    const Tensors found = program.run(arguments);
    for (const auto& [name, value] : ir::interpret(graph, arguments)) {
      INFO(name);
      CHECK(error_of(found.at(name), value) <= 1e-5);
    }
  }
}

TEST_CASE("masks that are not a sliding window skip no columns") {
  const auto all = [](const MakeMask& mask) {
    const ir::Graph graph = attention(mask);
    const ProgramInterpreter program(graph, cpu_with(256));
    const Tensors arguments = random_arguments(graph), found = program.run(arguments);
    for (const auto& [name, value] : ir::interpret(graph, arguments)) CHECK(error_of(found.at(name), value) <= 1e-5);
    return flops(program) >= 3 * forward_flops(length);
  };
  CHECK(all([](Graph&, auto& i, auto& j) { return abs(i - j) >= 20; }));       // outside the window
  CHECK(all([](Graph&, auto& i, auto& j) { return abs(i - j * 2) < 20; }));    // another slope
  CHECK(all([](Graph&, auto& i, auto& j) { return abs(i + j - 150) < 20; }));  // across
}
