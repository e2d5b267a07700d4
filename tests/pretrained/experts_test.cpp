#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/dsl.h"
#include "frontend/nn/low_rank.h"
#include "passes/program/program.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "tests/pretrained/experts_reference.h"
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
  const auto& kernels = program_of(executable).kernels;
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

namespace {

/// The weights and the input of experts_reference.py.
HostTensor sines(double seed, const std::vector<std::int64_t>& shape) {
  HostTensor tensor(f64, shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::sin(static_cast<double>(i) * 1.7 + seed));
  return tensor;
}

/// Three experts with a capacity of 6 of 10 tokens.
struct WithCapacity {
  nn::Module root{"Model", f64};
  Dim width{"d", 4};
  nn::Experts experts{root, "moe", width, Dim("d_ff", 3), {.count = 3, .chosen = 2, .capacity_factor = 0.9}};

  Executable compiled(nn::Dispatch dispatch) const {
    Graph g("experts");
    const Tensor x = g.input("x", f64, {B, T, width});
    std::vector<nn::Routing> routings;
    const Tensor y = experts(x, dispatch, &routings);
    const Tensor balance = nn::load_balancing_loss(routings[0]), z = nn::router_z_loss(routings[0]);
    const Tensor loss = square(y).sum() + balance + z;
    const std::vector<Tensor> gradients = grad(loss, {x, experts.parameters()[0].in(g)});
    for (const auto& [name, value] : {std::pair{"y", y},
                                      {"kept", routings[0].is_kept},
                                      {"balance", balance},
                                      {"z", z},
                                      {"loss", loss},
                                      {"gradient_of_x", gradients[0]},
                                      {"gradient_of_gate", gradients[1]}})
      g.output(name, value);
    Executable executable = compile(g.finish(), {.cache = test::shared_kernels()});
    Tensors values{{"moe.gate.weight", sines(1, {3, 4})}};
    for (int e = 0; e < 3; ++e) {
      const std::string path = fmt::format("moe.experts.{}.", e);
      values.set(path + "gate_proj.weight", sines(10 * e, {3, 4}));
      values.set(path + "up_proj.weight", sines(10 * e + 1, {3, 4}));
      values.set(path + "down_proj.weight", sines(10 * e + 2, {4, 3}));
    }
    executable.parameters().set(values);
    return executable;
  }
};

}  // namespace

TEST_CASE("experts: capacity, losses and gradients match PyTorch, dense and sparse") {
  namespace reference = test::experts_reference;
  const WithCapacity model;
  for (const nn::Dispatch dispatch : {nn::Dispatch::dense, nn::Dispatch::sparse}) {
    Executable executable = model.compiled(dispatch);
    CHECK(multiplies_segments(executable) == (dispatch == nn::Dispatch::sparse));
    const Tensors found = executable.run({{"x", sines(0.3, {2, 5, 4})}});
    CHECK(std::ranges::count(reference::kept, 0.0) == 3);
    CHECK(found.at("kept").values() == reference::kept);
    CHECK(found.at("balance").item() == Approx(reference::balance).epsilon(1e-12));
    CHECK(found.at("z").item() == Approx(reference::z).epsilon(1e-12));
    for (const auto& [name, expected] : {std::pair{"y", &reference::y},
                                         {"gradient_of_x", &reference::gradient_of_x},
                                         {"gradient_of_gate", &reference::gradient_of_gate}}) {
      INFO(name);
      const std::vector<double> values = found.at(name).values();
      REQUIRE(values.size() == expected->size());
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(values[i] == Approx((*expected)[i]).epsilon(1e-10).margin(1e-12));
    }
  }
}

TEST_CASE("experts: gradients with a capacity match finite differences") {
  const WithCapacity model;
  Executable executable = model.compiled(nn::Dispatch::sparse);
  const HostTensor x = sines(0.3, {2, 5, 4});
  const HostTensor gradient = executable.run({{"x", x}}).at("gradient_of_x");
  for (std::int64_t i = 0; i < x.numel(); i += 3) {
    const auto loss_at = [&](double shift) {
      HostTensor moved = x;
      moved.set(i, x.get(i) + shift);
      return executable.run({{"x", moved}}).at("loss").item();
    };
    INFO(i);
    CHECK(gradient.get(i) == Approx((loss_at(1e-6) - loss_at(-1e-6)) / 2e-6).epsilon(1e-3).margin(1e-5));
  }
}

TEST_CASE("experts: a token that loses all of its choices yields zeros") {
  const nn::Experts experts(nn::Module("Model", f64), "moe", d, d_ff,
                            {.count = 2, .chosen = 1, .capacity_factor = 0.5});
  Executable executable = compiled(experts, nn::Dispatch::dense, f64);
  HostTensor gate(f64, {2, 12});
  for (std::int64_t i = 0; i < 12; ++i) gate.set({0, i}, 10);
  executable.parameters().set("moe.gate.weight", gate);
  HostTensor x(f64, {1, 8, 12});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 0.5);
  const HostTensor y = executable.run({{"x", x}}).at("y");  // every token prefers expert 0, which takes two
  for (std::int64_t token = 0; token < 8; ++token) CHECK((y.at({0, token, 0}) != 0) == (token < 2));
}
