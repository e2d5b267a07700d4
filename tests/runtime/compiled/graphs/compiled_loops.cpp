#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/loop_cases.h"

/// Compiled loops, whose bodies become launches that run several times.
using namespace lathe;
using lathe::test::check_compiled;

TEST_CASE("compiled loops agree with the interpreter, with first and second derivatives") {
  for (const test::LoopCase& each : test::loop_cases())
    for (const DType dtype : {f64, f32}) {
      CAPTURE(each.name, name(dtype));
      check_compiled(each.graph(dtype, false, dtype == f64), {.tolerance = dtype == f64 ? 1e-11 : 2e-5});
    }
}

TEST_CASE("compiled loops of late-bound numbers of iterations") {
  Graph g{"late"};
  const Dim T{"T"}, B{"B"};
  const Tensor x = g.input("x", f32, {T, B, 20}), h0 = g.input("h0", f32, {B, 20});
  const Tensor w = g.input("w", f32, {20, 20});
  const auto [last, all] = scan(h0, x, [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(h, w) * 0.1 + x_t);
    return std::pair(next, next);
  });
  const std::vector<Tensor> gradients = grad((all * all).sum() + last.sum(), {x, h0, w});
  g.output("last", last);
  g.output("all", all);
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  check_compiled(g.finish(), {.sizes = {{{"T", 5}, {"B", 2}},
                                        {{"T", 1}, {"B", 3}},
                                        {{"T", 0}, {"B", 2}},
                                        {{"T", 33}, {"B", 1}},
                                        {{"T", 7}, {"B", 40}}},
                              .tolerance = 5e-5});
}

TEST_CASE("compiled loops carry integers, update states and read what they overwrite") {
  Graph g{"states"};
  const Tensor x = g.input("x", f32, {6, 4}), memory = g.state("memory", f32, {4}), count = g.state("count", i64, {});
  const LoopResults results =
      scan({memory, count}, {x}, [&](std::span<const Tensor> carry, std::span<const Tensor> row) {
        return LoopStep{{carry[0] * 0.5 + row[0] + memory, carry[1] + 1}, {carry[0]}};
      });
  g.update(memory, results.carries[0]);
  g.update(count, results.carries[1]);
  g.output("seen", results.outputs[0]);
  check_compiled(g.finish(), {.tolerance = 1e-6});
}
