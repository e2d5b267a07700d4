#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/recurrent_cases.h"

/// Compiled recurrent layers, and recurrences in chunks.
using namespace lathe;
using lathe::test::check_compiled;

TEST_CASE("compiled recurrent layers agree with the interpreter, with gradients") {
  for (const test::LoopCase& each : test::recurrent_cases())
    for (const DType dtype : {f64, f32}) {
      CAPTURE(each.name, name(dtype));
      check_compiled(each.graph(dtype, false), {.tolerance = dtype == f64 ? 1e-11 : 2e-5});
    }
}

TEST_CASE("compiled recurrences of late-bound numbers of chunks") {
  const Dim B{"B"}, n{"n"}, T = Dim(8) * n;
  Graph g{"late"};
  const Tensor q = g.input("q", f32, {B, T, 2, 12}), k = g.input("k", f32, {B, T, 2, 12});
  const Tensor v = g.input("v", f32, {B, T, 2, 20}), gate = g.input("gate", f32, {B, T, 2});
  const RecurrenceResults delta =
      gated_delta_rule(normalize(q), normalize(k), v, -softplus(gate), sigmoid(gate), {.chunk = 8});
  const RecurrenceResults space = state_space_dual(v, softplus(gate), g.literal({2}, {-0.5, -2}, f32), q, k,
                                                   {.chunk = 8, .skip = g.ones({2}, f32)});
  const std::vector<Tensor> gradients =
      grad((delta.output * space.output).sum() + delta.state.sum() + space.state.sum(), {q, k, v, gate});
  g.output("delta", delta.output);
  g.output("space", space.output);
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  check_compiled(g.finish(),
                 {.sizes = {{{"n", 3}, {"B", 2}}, {{"n", 1}, {"B", 1}}, {{"n", 9}, {"B", 1}}}, .tolerance = 1e-4});
}
