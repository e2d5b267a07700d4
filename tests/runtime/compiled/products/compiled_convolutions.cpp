#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/convolution_cases.h"

/// Compiled convolutions, whose windows are views that the kernels of products read in place.
using namespace lathe;
using lathe::test::check_compiled;

TEST_CASE("compiled convolutions, pooling and resizing agree with the interpreter, with gradients") {
  for (const test::ConvolutionCase& each : test::convolution_cases())
    for (const DType dtype : {f64, f32}) {
      CAPTURE(each.name, name(dtype));
      check_compiled(each.graph(dtype), {.tolerance = dtype == f64 ? 1e-11 : 2e-5});
    }
}

TEST_CASE("compiled convolutions of late-bound sizes") {
  Graph g{"late"};
  const Dim B{"B"}, n{"n"};
  const Tensor x = g.input("x", f32, {B, 5, n, n}), w = g.input("w", f32, {20, 5, 3, 3});
  const Tensor y = conv2d(x, w, {.padding = 1});
  const std::vector<Tensor> gradients = grad((y * y).sum(), {x, w});
  g.output("y", y);
  g.output("x.grad", gradients[0]);
  g.output("w.grad", gradients[1]);
  check_compiled(g.finish(),
                 {.sizes = {{{"B", 2}, {"n", 7}}, {{"B", 1}, {"n", 33}}, {{"B", 3}, {"n", 1}}}, .tolerance = 5e-5});
}
