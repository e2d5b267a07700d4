#include "frontend/ops/derived_ops.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/texts/error_label.h"

/// Functions that are composed of other ops.
using namespace lathe;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

/// Returns the elements of what a function returns for x [2, 3].
std::vector<double> results(const std::function<Tensor(const Graph& g, const Tensor& x)>& make,
                            const std::vector<double>& x = {1, -2, 3, 4.5, 0, -6}) {
  Graph g{"derived"};
  const Tensor in = g.input("x", f64, {Dim("n", 2), 3});
  g.output("y", make(g, in));
  const HostTensor y = ir::interpret(g.finish(), {{"x", HostTensor::from({2, 3}, x, f64)}}).at("y");
  std::vector<double> elements;
  for (std::int64_t i = 0; i < y.numel(); ++i) elements.push_back(y.get(i));
  return elements;
}

using List = std::vector<double>;

}  // namespace

TEST_CASE("derived ops: reductions", "[derived]") {
  CHECK(results([](auto&, auto& x) { return sum(x, 1); }) == List{2, -1.5});
  CHECK(results([](auto&, auto& x) { return mean(x, 0); }) == List{2.75, -1, -1.5});
  CHECK(results([](auto&, auto& x) { return max(x); }) == List{4.5});
  CHECK(results([](auto&, auto& x) { return min(x, 1, true); }) == List{-2, -6});
  CHECK(results([](auto&, auto& x) { return var(x, 1); })[0] == Approx(19.0 / 3));
  CHECK(results([](auto&, auto& x) { return logsumexp(x, 1); })[1] ==
        Approx(std::log(std::exp(4.5) + 1 + std::exp(-6))));
  CHECK(results([](auto&, auto& x) { return argmax(x, 1); }) == List{2, 0});
  CHECK(results([](auto&, auto& x) { return argmin(x, -1); }) == List{1, 2});
  CHECK(results([](auto&, auto& x) { return any(x > 4, 1); }) == List{0, 1});
  CHECK(results([](auto&, auto& x) { return all(x > -3, 1); }) == List{1, 0});
  CHECK(results([](auto&, auto& x) { return any(x.slice(1, 0, 0) > 0); }) == List{0});
  CHECK(results([](auto&, auto& x) { return all(x.slice(1, 0, 0) > 0); }) == List{1});
  CHECK(results([](auto&, auto& x) { return norm(x, 1); })[0] == Approx(std::sqrt(14.0)));
  CHECK(results([](auto&, auto& x) { return norm(normalize(x), 1); })[1] == Approx(1));
  CHECK(results([](auto&, auto& x) { return normalize(x * 0.0); }) == List{0, 0, 0, 0, 0, 0});
}

TEST_CASE("derived ops: element-wise", "[derived]") {
  CHECK(results([](auto&, auto& x) { return ceil(x * 0.5); }) == List{1, -1, 2, 3, 0, -3});
  const List odd{quiet_nan, infinity, -infinity, 0, 1, -1};
  CHECK(results([](auto&, auto& x) { return isnan(x); }, odd) == List{1, 0, 0, 0, 0, 0});
  CHECK(results([](auto&, auto& x) { return isfinite(x); }, odd) == List{0, 0, 0, 1, 1, 1});
  CHECK(results([](auto&, auto& x) { return maximum(0, x); }) == List{1, 0, 3, 4.5, 0, 0});
  CHECK(results([](auto&, auto& x) { return minimum(0, x); }) == List{0, -2, 0, 0, 0, -6});
  CHECK(results([](auto&, auto& x) { return pow(2, x); })[1] == 0.25);
  CHECK(results([](auto&, auto& x) { return 0 < x; }) == List{1, 0, 1, 1, 0, 0});
  CHECK(results([](auto&, auto& x) { return 0 <= x; }) == List{1, 0, 1, 1, 1, 0});
  CHECK(results([](auto&, auto& x) { return 0 > x; }) == List{0, 1, 0, 0, 0, 1});
  CHECK(results([](auto&, auto& x) { return 0 >= x; }) == List{0, 1, 0, 0, 1, 1});
  CHECK(results([](auto&, auto& x) { return 0 == x; }) == List{0, 0, 0, 0, 1, 0});
  CHECK(results([](auto&, auto& x) { return 0 != x; }) == List{1, 1, 1, 1, 0, 1});
  CHECK(results([](auto&, auto& x) {
          Tensor y = x;
          y += x;
          y *= y;
          y -= x;
          y /= x;
          return y;
        })[2] == 11);
}

TEST_CASE("derived ops: shapes", "[derived]") {
  CHECK(results([](auto&, auto& x) { return zeros_like(x); }) == List(6, 0));
  CHECK(results([](auto&, auto& x) { return ones_like(x); }) == List(6, 1));
  CHECK(results([](auto&, auto& x) { return flip(x, 1); }) == List{3, -2, 1, -6, 0, 4.5});
  CHECK(results([](auto&, auto& x) { return flip(x, 0); }) == List{4.5, 0, -6, 1, -2, 3});
  CHECK(results([](auto&, auto& x) { return roll(x, 1, 1); }) == List{3, 1, -2, -6, 4.5, 0});
  CHECK(results([](auto&, auto& x) { return roll(x, 1, 0); }) == List{4.5, 0, -6, 1, -2, 3});
  CHECK(results([](auto&, auto& x) { return outer(x.select(0, 0), x.select(0, 1)); })[1] == 0);
  CHECK(results([](auto&, auto& x) { return x.slice(1, 1); }) == List{-2, 3, 0, -6});
  CHECK(results([](auto&, auto& x) { return x.split({1, 2}, 1)[1]; }) == List{-2, 3, 0, -6});
  CHECK(results([](auto& g, auto&) { return g.eye(2, f64); }) == List{1, 0, 0, 1});
  CHECK(results([](auto& g, auto&) { return g.zeros({2}, f64) + g.ones({2}, f64); }) == List{1, 1});
  CHECK(test::error_label([] { results([](auto&, auto& x) { return x.split({1, 1}, 1)[0]; }); }) == "split_size");
}

TEST_CASE("derived ops: networks", "[derived]") {
  const List normed = results([](auto&, auto& x) { return layer_norm(x); });
  CHECK(normed[0] + normed[1] + normed[2] == Approx(0).margin(1e-12));
  Graph dropping{"dropping"};
  const Tensor in = dropping.input("x", f32, {64});
  dropping.output("y", dropout(in, 0.5));
  const ir::Graph drops = dropping.finish();
  Tensors arguments = initial_values(drops, {}, 0);
  arguments.set("x", HostTensor::from({64}, List(64, 1), f32));
  const HostTensor dropped = ir::interpret(drops, arguments).at("y");
  int zeros = 0;
  for (std::int64_t i = 0; i < 64; ++i) zeros += dropped.get(i) == 0 ? 1 : 0;
  CHECK((zeros > 16 && zeros < 48));
  const auto plain = [](const Graph&, const Tensor& x) { return attention(x, x, x); };
  const auto full = [](const Graph&, const Tensor& x) {
    return attention(x, x, x, std::nullopt, 1 / std::sqrt(3.0), false);
  };
  CHECK(results(plain) == results(full));
  const auto causal = [](const Graph&, const Tensor& x) { return attention(x, x, x, true); };
  CHECK(results(causal)[0] == 1);
  Graph g{"unknown"};
  const Tensor x = g.input("x", f32, {2, Dim("d")});
  CHECK(test::error_label([&] { attention(x, x, x); }) == "attention_scale");
}

TEST_CASE("derived ops: gradients, at the caller's line", "[derived]") {
  Graph g{"gradients"};
  const Tensor x = g.input("x", f64, {2, 3});
  g.output("dx", grad(sum(normalize(x) * roll(flip(x, 1), 1, 1)), {x})[0]);
  const ir::Graph graph = g.finish();
  for (const ir::ValueId id : ir::all_values(graph))
    if (graph[id].loc.known()) CHECK(graph[id].loc.file().find("derived_ops_test.cpp") != std::string::npos);
}
