#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "frontend/dsl.h"
#include "frontend/nn/attention/relative_bias.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/feed_forward.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/tensors/sines.h"

using namespace lathe;
using test::sines;

namespace {

/// Returns the bucket of a distance like the paper's code.
std::int64_t bucket(std::int64_t distance, std::int64_t side, double furthest) {
  const std::int64_t near = side / 2;
  if (distance < near) return distance;
  const double n = static_cast<double>(near);
  const double beyond =
      std::log(static_cast<double>(distance) / n) / std::log(furthest / n) * static_cast<double>(side - near);
  return std::min(near + static_cast<std::int64_t>(beyond), side - 1);
}

}  // namespace

TEST_CASE("bidirectional attention sees all keys except padding, and a bias is added to its scores") {
  Graph g{"attention"};
  const Dim B{"B"}, T{"T"}, S{"S"};
  const Tensor q = g.input("q", f64, {B, 1, T, 2}), k = g.input("k", f64, {B, 1, S, 2});
  const Tensor bias = g.input("bias", f64, {1, T, S});
  const auto context = nn::AttentionContext::bidirectional(g.input("mask", i64, {B, S})).with_bias(bias);
  g.output("y", context.attend(q, k, k, {.scale = 0.5}));
  const HostTensor qs = sines({2, 1, 2, 2}, 1.3), ks = sines({2, 1, 3, 2}, 0.7), bs = sines({1, 2, 3}, 2.1);
  const HostTensor mask = HostTensor::from({2, 3}, {1, 0, 1, 0, 0, 0}, i64);
  const HostTensor y = ir::interpret(g.finish(), {{"q", qs}, {"k", ks}, {"bias", bs}, {"mask", mask}}).at("y");
  for (std::int64_t i = 0; i < 2; ++i) {
    double sum = 0, first = 0, second = 0;
    for (const std::int64_t j : {0, 2}) {
      const double score = (qs.get(2 * i) * ks.get(2 * j) + qs.get(2 * i + 1) * ks.get(2 * j + 1)) * 0.5;
      const double weight = std::exp(score + bs.get(3 * i + j));
      sum += weight, first += weight * ks.get(2 * j), second += weight * ks.get(2 * j + 1);
    }
    CHECK(y.get(2 * i) == Approx(first / sum));
    CHECK(y.get(2 * i + 1) == Approx(second / sum));
    CHECK(y.get(4 + 2 * i) == 0);  // a sentence that is all padding
  }
}

TEST_CASE("relative biases for query positions are rows of the full bias") {
  for (const bool bidirectional : {true, false}) {
    Graph g{"bias"};
    const nn::RelativeBias bias(g, "bias", Dim("h", 2),
                                {.dtype = f64, .buckets = 12, .max_distance = 20, .bidirectional = bidirectional});
    g.output("whole", bias(g, 9, 9, f64));
    g.output("rows", bias(g.input("at", i64, {3}), 9, f64));
    const auto got = ir::interpret(
        g.finish(), {{"bias.weight", sines({12, 2}, 1.7)}, {"at", HostTensor::from({3}, {8, 0, 5}, i64)}});
    const std::int64_t at[] = {8, 0, 5};
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t s = 0; s < 9; ++s)
          CHECK(got.at("rows").get((h * 3 + i) * 9 + s) == got.at("whole").get((h * 9 + at[i]) * 9 + s));
  }
}

TEST_CASE("relative biases have one bucket per near distance and logarithmic buckets for far ones") {
  for (const bool bidirectional : {true, false}) {
    const std::int64_t buckets = 12, side = bidirectional ? buckets / 2 : buckets, T = 5, S = 40;
    Graph g{"bias"};
    const nn::RelativeBias bias(
        g, "bias", Dim("h", 2),
        {.dtype = f64, .buckets = buckets, .max_distance = 20, .bidirectional = bidirectional});
    g.output("y", bias(g, Dim(T), Dim(S), f64));
    const HostTensor table = sines({buckets, 2}, 1.7);
    const HostTensor y = ir::interpret(g.finish(), {{"bias.weight", table}}).at("y");
    REQUIRE(y.shape() == std::vector<std::int64_t>{2, T, S});
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t i = 0; i < T; ++i)
        for (std::int64_t j = 0; j < S; ++j) {
          const bool ahead = j > i;
          std::int64_t row = ahead && !bidirectional ? 0 : bucket(std::abs(j - i), side, 20);
          if (ahead && bidirectional) row += side;
          CHECK(y.get((h * T + i) * S + j) == table.get(row * 2 + h));
        }
  }
}

TEST_CASE("activations match their formulas") {
  using nn::Activation;
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  const std::vector<std::pair<Activation, std::function<double(double)>>> all{
      {Activation::quick_gelu, [&](double x) { return x * sigmoid_of(1.702 * x); }},
      {Activation::relu_squared, [](double x) { return x > 0 ? x * x : 0; }},
      {Activation::relu6, [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
      {Activation::leaky_relu, [](double x) { return x > 0 ? x : x / 100; }},
      {Activation::sigmoid, sigmoid_of},
      {Activation::tanh, [](double x) { return std::tanh(x); }},
      {Activation::mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {Activation::linear, [](double x) { return x; }},
  };
  Graph g{"activations"};
  const Tensor x = g.input("x", f64, {Dim("n")});
  for (std::size_t i = 0; i < all.size(); ++i) g.output(std::to_string(i), nn::activate(all[i].first, x));
  const HostTensor values = HostTensor::from({5}, {-7.5, -0.3, 0.2, 2.5, 8}, f64);
  const auto found = ir::interpret(g.finish(), {{"x", values}});
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::int64_t at = 0; at < 5; ++at) {
      INFO(i << " of " << values.get(at));
      CHECK(found.at(std::to_string(i)).get(at) == Approx(all[i].second(values.get(at))).margin(1e-12));
    }
}
