#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "tests/support/tensors/compare_tensors.h"

/// The memory of loop gradients with and without checkpoints.
using namespace lathe;

namespace {

constexpr std::int64_t iterations = 256, batch = 8, d = 64;
constexpr std::int64_t carry_bytes = batch * d * 8, weight_bytes = d * d * 8;

/// The gradient of the weight and the bias of tanh(h w + b + x).
ir::Graph gradients(std::int64_t checkpoint_every) {
  Graph g{"recurrent"};
  const Tensor x = g.input("x", f64, {iterations, batch, d}), w = g.parameter("w", f64, {d, d}),
               bias = g.parameter("bias", f64, {d});
  const auto step = [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(h, w) + bias + x_t);
    return std::pair(next, next);
  };
  const Tensor last = scan(g.zeros({batch, d}, f64), x, step, {.checkpoint_every = checkpoint_every}).first;
  const std::vector<Tensor> found = grad((last * last).mean(), {w, bias});
  g.output("w", found[0]);
  g.output("bias", found[1]);
  return g.finish();
}

}  // namespace

TEST_CASE("checkpoints: a loop's gradient keeps the carries of all segments and the values of one") {
  const auto value = [](const char* name, const std::vector<std::int64_t>& sizes) {
    return initial_value(Init::normal({.deviation = 0.1}), name, f64, sizes, 1);
  };
  const Tensors parameters{{"w", value("w", {d, d})}, {"bias", value("bias", {d})}},
      inputs{{"x", value("x", {iterations, batch, d})}};
  const auto compiled = [&](std::int64_t every) {
    Executable executable = compile(gradients(every), {.threads = 1});
    executable.parameters().set(parameters);
    return executable;
  };
  Executable all = compiled(0);
  CHECK(memory_plan_of(all, {}).arena_bytes >= 2 * iterations * carry_bytes);
  const Tensors expected = all.run(inputs);
  for (const std::int64_t every : {8, 16, 64}) {
    Executable some = compiled(every);
    // A segment has the carry, the product and the gradient of each iteration.
    const std::int64_t most = (iterations / every + 3 * every + 4) * carry_bytes + 3 * weight_bytes;
    CHECK(memory_plan_of(some, {}).arena_bytes <= most);
    const Tensors found = some.run(inputs);
    for (const auto& [name, gradient] : expected) CHECK(test::error_of(found.at(name), gradient) < 1e-12);
  }
}
