#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/nn/low_rank.h"
#include "passes/program/program.h"
#include "runtime/compile.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/tensors/distance.h"

using namespace lathe;

namespace {

const Dim B("B"), T("T"), d("d", 12), d_ff("d_ff", 20);

/// Compiles y and the gradients of x and of all parameters, with this dispatch.
Executable compiled(const nn::Experts& experts, nn::Dispatch dispatch, DType dtype) {
  Graph g("experts");
  const Tensor x = g.input("x", dtype, {B, T, d});
  const Tensor y = experts(x, dispatch);
  g.output("y", y);
  std::vector<Tensor> wanted = {x};
  for (const nn::Parameter& parameter : experts.parameters()) wanted.push_back(parameter.in(g));
  const std::vector<Tensor> gradients = grad(square(y).sum(), wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output(fmt::format("gradient.{}", i), gradients[i]);
  Executable executable = compile(g.finish(), {.cache = test::shared_kernels()});
  Tensors values;
  for (auto& [name, value] : experts.initial_values(3)) values.emplace(name, std::move(value));
  executable.parameters().set(values);
  return executable;
}

bool multiplies_segments(const Executable& executable) {
  const auto& kernels = executable.program().kernels;
  return std::any_of(kernels.begin(), kernels.end(), [](const kernel::Kernel& kernel) {
    return kernel.name.find("grouped_product") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("experts: sparse matches dense, including gradients, for any number of tokens") {
  for (const DType dtype : {f64, f32})
    for (const std::int64_t chosen : {1, 2, 3}) {
      const nn::Experts experts(nn::Module(), "moe", d, d_ff,
                                {.count = 6, .chosen = chosen, .expert = {.dtype = dtype}});
      Executable dense = compiled(experts, nn::Dispatch::dense, dtype);
      Executable sparse = compiled(experts, nn::Dispatch::sparse, dtype);
      CHECK(!multiplies_segments(dense));
      CHECK(multiplies_segments(sparse));
      for (const auto& [b, t] : {std::pair<std::int64_t, std::int64_t>{3, 7}, {1, 1}, {2, 40}, {0, 3}}) {
        CAPTURE(name(dtype), chosen, b, t);
        const Tensors arguments{{"x", initial_value(Init::normal({.deviation = 1}), "x", dtype, {b, t, 12}, 7)}};
        const Tensors expected = dense.run(arguments), found = sparse.run(arguments);
        for (const auto& [name, value] : expected) {
          INFO(name);
          CHECK(ir::test::distance(found.at(name), value) <= (dtype == f64 ? 1e-12 : 1e-5));
        }
      }
    }
}

TEST_CASE("experts: no token is dropped even if one expert gets all of them") {
  const nn::Experts experts(nn::Module(), "moe", d, d_ff, {.count = 8, .chosen = 1, .expert = {.dtype = f64}});
  Executable dense = compiled(experts, nn::Dispatch::dense, f64),
             sparse = compiled(experts, nn::Dispatch::automatic, f64);
  CHECK(multiplies_segments(sparse));
  HostTensor gate(f64, {8, 12});
  for (std::int64_t i = 0; i < 12; ++i) gate.set(5 * 12 + i, 10);
  for (Executable* each : {&dense, &sparse}) each->parameters().set({{"moe.gate.weight", gate}});
  HostTensor x(f64, {2, 9, 12});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 0.1 + 0.01 * static_cast<double>(i % 17));
  const Tensors expected = dense.run({{"x", x}}), found = sparse.run({{"x", x}});
  CHECK(ir::test::distance(found.at("y"), expected.at("y")) <= 1e-12);
  CHECK(found.at("y").get(0) != 0);
}

TEST_CASE("experts: automatic selects sparse for many experts, and dense with adapters") {
  const auto is_sparse = [](const nn::Experts& experts, nn::Dispatch dispatch) {
    return multiplies_segments(compiled(experts, dispatch, f32));
  };
  const nn::Experts few(nn::Module(), "moe", d, d_ff, {.count = 4, .chosen = 2});
  const nn::Experts many(nn::Module(), "moe", d, d_ff, {.count = 8, .chosen = 2});
  CHECK(!is_sparse(few, nn::Dispatch::automatic));
  CHECK(is_sparse(few, nn::Dispatch::sparse));
  CHECK(is_sparse(many, nn::Dispatch::automatic));
  CHECK(!is_sparse(many, nn::Dispatch::dense));
  nn::Linear::of(many.children()[1].children()[0])->add_low_rank({});
  CHECK(!is_sparse(many, nn::Dispatch::sparse));
}
