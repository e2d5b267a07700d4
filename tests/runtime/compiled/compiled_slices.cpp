#include <catch2/catch.hpp>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/program_interpreter.h"

/// Gradients of many slices of one value, compiled.
using namespace lathe;
using lathe::test::check_compiled;

namespace {

/// The loss of a recurrence over time, and its gradients.
ir::Graph recurrence(int steps, DType dtype) {
  ir::GraphBuilder b("recurrence");
  const ir::Value x = b.argument(ir::ops::input, "x", dtype, {Dim("B"), steps, 6});
  const ir::Value w = b.argument(ir::ops::parameter, "w", dtype, {6});
  const ir::Value all = mul(x, w);
  ir::Value s = select(all, 1, 0);
  for (int t = 1; t < steps; ++t) s = tanh(add(s, select(all, 1, t)));
  b.output("loss", sum(mul(s, s)));
  return ir::differentiate(b.finish(), {.outputs = {{"loss", ""}}, .wrt = {"x", "w"}});
}

struct Costs {
  std::size_t launches = 0;
  std::int64_t bytes = 0;  ///< minimum bytes that launches read and write
};

Costs costs(int steps) {
  const Program program = test::ProgramInterpreter(recurrence(steps, f32)).program();
  Costs found{.launches = program.launches.size()};
  for (const Launch& launch : program.launches) found.bytes += launch.bytes.evaluate({{"B", 3}});
  return found;
}

}  // namespace

TEST_CASE("gradients of many slices: match the interpreter") {
  const std::vector<DimBindings> sizes = {{{"B", 3}}, {{"B", 1}}, {{"B", 0}}};
  check_compiled(recurrence(100, f64), {.sizes = sizes, .tolerance = 1e-12});
  check_compiled(recurrence(70, f32), {.sizes = sizes, .tolerance = 1e-5, .interpret_kernels = false});
}

// A concat of more than 16 parts becomes a tree of concats: both numbers of slices need three levels.
TEST_CASE("gradients of many slices: launches and bytes are linear in the number of slices") {
  const Costs some = costs(272), many = costs(4 * 272);
  CHECK(many.bytes <= 4 * some.bytes + some.bytes / 4);
  CHECK(many.launches <= 4 * some.launches + some.launches / 4);
}
