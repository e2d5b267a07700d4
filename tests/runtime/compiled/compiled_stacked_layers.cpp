#include <catch2/catch.hpp>

#include "runtime/compile.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/recurrent_steps.h"
#include "tests/support/kernels/kernel_store.h"

/// Models whose layers are one loop, compiled.
using namespace lathe;

namespace {

template <class Model, class Config>
ir::Graph with_gradients(Config config) {
  config.stacked = true;
  Graph g{"model"};
  const Model model(g, config);
  const Tensor loss = model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1}));
  g.output("loss", loss);
  for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
  return g.finish();
}

}  // namespace

TEST_CASE("stacked layers: compiled losses and gradients of a Gpt and a Llama") {
  const std::vector<DimBindings> sizes{{{"B", 2}, {"T", 5}}, {{"B", 1}, {"T", 8}}};
  const test::CheckOptions options{.sizes = sizes, .tolerance = 1e-10, .interpret_kernels = false};
  test::check_compiled(with_gradients<models::Gpt>(test::divisible_gpt(3, 0, f64)), options);
  test::check_compiled(with_gradients<models::Llama>(test::divisible_llama(3, f64)), options);
}

TEST_CASE("stacked layers: the code of 192 layers is that of 48") {
  const Executable few = compile(test::stacked_gpt_step(48, f32), {.threads = 2, .cache = test::shared_kernels()}),
                   many = compile(test::stacked_gpt_step(192, f32), {.threads = 2, .cache = test::shared_kernels()});
  CHECK(few.summary().kernels == many.summary().kernels);
  CHECK(few.summary().launches == many.summary().launches);
}
