#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ir/ops/functional/functional_composites.h"
#include "tests/ops/samples.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double nan_value = std::numeric_limits<double>::quiet_NaN();

/// Checks for equality up to a relative 1e-12; NaN equals NaN.
void check_near(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i, found[i], expected[i]);
    const bool same = found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]));
    CHECK((same || std::fabs(found[i] - expected[i]) <= 1e-12 * std::fabs(expected[i])));
  }
}

Numbers softmax_of(const Numbers& row) {
  const double top = *std::max_element(row.begin(), row.end());
  Numbers result;
  double sum = 0;
  for (const double x : row) sum += std::exp(x - top);
  for (const double x : row) result.push_back(std::exp(x - top) / sum);
  return result;
}

}  // namespace

TEST_CASE("softmax does not overflow and does not hide a fully masked row") {
  Interpreted t;
  check_near(t.numbers(softmax(t.input({3}, {1, 2, 3}, f64), 0)), softmax_of({1, 2, 3}));
  check_near(t.numbers(softmax(t.input({2}, {1e4, -1e4}, f64), 0)), {1, 0});
  check_near(t.numbers(softmax(t.input({2, 2}, {-infinity, -infinity, 0, -infinity}, f64), 1)),
             {nan_value, nan_value, 1, 0});
  const Value rows = t.input({4, 2}, {-infinity, -infinity, 0, -infinity, nan_value, 1, -1e300, -1e300}, f64);
  check_near(t.numbers(softmax(rows, 1, true)), {0, 0, 1, 0, nan_value, nan_value, 0.5, 0.5});
  check_near(t.numbers(softmax(t.input({2}, {infinity, 0}, f64), 0)), {nan_value, nan_value});
  // -1e9 is a number, not a mask: a row of it is uniform.
  check_near(t.numbers(softmax(t.input({2}, {-1e9, -1e9}, f64), 0)), {0.5, 0.5});
  check_near(t.numbers(log_softmax(t.input({2}, {1000, 0}, f64), 0)), {0, -1000});
  check_near(t.numbers(log_softmax(t.input({2}, {-infinity, -infinity}, f64), 0)), {nan_value, nan_value});
}

TEST_CASE("logsumexp of infinities") {
  Interpreted t;
  const Value a = t.input({4, 2}, {-infinity, -infinity, infinity, 0, 1000, 1000, nan_value, 0}, f64);
  check_near(t.numbers(logsumexp(a, 1)), {-infinity, infinity, 1000 + std::log(2), nan_value});
}

TEST_CASE("argmax returns the first of equal elements, and NaN before all others") {
  Interpreted t;
  const Value a =
      t.input({4, 3}, {1, 3, 3, nan_value, 5, nan_value, 2, nan_value, 9, -infinity, -infinity, -infinity});
  CHECK(t.numbers(argmax(a, 1)) == Numbers{1, 0, 1, 0});
  CHECK(t.numbers(argmax(t.input({2, 2}, {-5, 4, -3, 4}, i32), 0)) == Numbers{1, 0});
  CHECK(argmax(a, -1).dtype() == i64);
}

TEST_CASE("mean and variance of few elements and of none") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 2, 6, -1, 0, 4}, f64);
  check_near(t.numbers(mean(a, {1})), {3, 1});
  check_near(t.numbers(mean(a)), {2});
  check_near(t.numbers(var(a, {1})), {7, 7});
  check_near(t.numbers(var(a, {1}, true, 0)), {14.0 / 3, 14.0 / 3});
  const Value empty = t.input({2, 0}, {}, f64);
  check_near(t.numbers(mean(empty, {1})), {nan_value, nan_value});
  check_near(t.numbers(var(t.input({1}, {4}, f64))), {nan_value});
}

TEST_CASE("sizes that are unknown until run time divide exactly") {
  Interpreted t;
  const Dim n{"n_seq"}, m{"m"};
  const HostTensor values = HostTensor::from({2, 3}, {1, 2, 6, -1, 0, 4}, f64);
  const Value a = t.input(values, {m, n});
  check_near(t.numbers(mean(a, {0, 1})), {2});
  check_near(t.numbers(var(a, {0, 1}, false, 1)), {6.8});
  CHECK(t.numbers(dim_value(t.builder, n * m + 1, i64)) == Numbers{7});
  const Value logits = t.input(HostTensor::from({2, 3}, {0, 0, 0, 0, 0, 0}, f64), {m, n});
  check_near(t.numbers(cross_entropy(logits, t.input(HostTensor::from_ints({2}, {0, 2}), {m}), {}, 0.5)),
             {std::log(3)});
}

TEST_CASE("layer_norm and rms_norm") {
  Interpreted t;
  const Value x = t.input({1, 4}, {1, 2, 3, 6}, f64), w = t.input({4}, {1, 2, 1, 1}, f64);
  const Value b = t.input({4}, {0, 0, 10, 0}, f64);
  const double s = 1 / std::sqrt(3.5 + 0.5), r = 1 / std::sqrt(12.5 + 0.5);
  check_near(t.numbers(layer_norm(x, w, b, 0.5)), {-2 * s, -2 * s, 10, 3 * s});
  check_near(t.numbers(rms_norm(x, 0.5)), {r, 2 * r, 3 * r, 6 * r});
  check_near(t.numbers(rms_norm(x, w, 0.5)), {r, 4 * r, 3 * r, 6 * r});
}

TEST_CASE("activations at known points") {
  Interpreted t;
  const Value x = t.input({4}, {1, -2, 1000, -1000}, f64);
  check_near(t.numbers(gelu(x)), {0.8413447460685429, -0.045500263896358417, 1000, 0});
  check_near(t.numbers(gelu(x, true)),
             {0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * 1.044715)),
              -(1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (-2 - 8 * 0.044715))), 1000, 0});
  check_near(t.numbers(sigmoid(x)), {1 / (1 + std::exp(-1)), 1 / (1 + std::exp(2)), 1, 0});
  check_near(t.numbers(silu(x)), {1 / (1 + std::exp(-1)), -2 / (1 + std::exp(2)), 1000, 0});
  check_near(t.numbers(softplus(x)), {std::log1p(std::exp(1.0)), std::log1p(std::exp(-2.0)), 1000, 0});
  // Far below 0 it is still accurate, although 1 + e^x is 1.
  check_near(t.numbers(mul(softplus(t.input({2}, {-20, -40}, f64)), 1e8)),
             {1e8 * std::log1p(std::exp(-20.0)), 1e8 * std::exp(-40.0)});
  check_near(t.numbers(relu(t.input({3}, {-1, nan_value, 2}))), {0, nan_value, 2});
  CHECK(t.numbers(square(t.input({2}, {-3, 2}, i64))) == Numbers{9, 4});
  CHECK(t.numbers(reciprocal(t.input({2}, {4, -0.5}))) == Numbers{0.25, -2});
  check_near(t.numbers(clamp(t.input({4}, {-2, 0.5, 3, nan_value}), -1, 1)), {-1, 0.5, 1, nan_value});
  CHECK(t.numbers(clamp(t.input({2}, {0, 9}), 5, 1)) == Numbers{1, 1});
}

TEST_CASE("masks") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(t.numbers(tril(a)) == Numbers{1, 0, 0, 4, 5, 0});
  CHECK(t.numbers(triu(a, 1)) == Numbers{0, 2, 3, 0, 0, 6});
  CHECK(t.numbers(tril(a, -1)) == Numbers{0, 0, 0, 4, 0, 0});
  CHECK(t.numbers(masked_fill(a, t.input({2, 1}, {0, 1}, boolean), -infinity)) ==
        Numbers{1, 2, 3, -infinity, -infinity, -infinity});
  CHECK(t.numbers(one_hot(t.input(HostTensor::from_ints({3}, {2, -1, 0})), 3, f32)) ==
        Numbers{0, 0, 1, 0, 0, 0, 1, 0, 0});
}

TEST_CASE("cross_entropy matches torch.nn.functional.cross_entropy") {
  Interpreted t;
  const Numbers rows[] = {{1, 2, 3}, {0, -1, 4}, {2, 2, -5}};
  const Value logits = t.input({3, 3}, {1, 2, 3, 0, -1, 4, 2, 2, -5}, f64);
  const auto loss = [&](std::vector<std::int64_t> targets, std::optional<std::int64_t> ignored, double smoothing) {
    return t.numbers(cross_entropy(logits, t.input(HostTensor::from_ints({3}, targets)), ignored, smoothing))[0];
  };
  const auto row_loss = [&](std::size_t row, std::size_t target, double smoothing) {
    const Numbers p = softmax_of(rows[row]);
    double all = 0;
    for (const double x : p) all -= std::log(x);
    return (1 - smoothing) * -std::log(p[target]) + smoothing / 3 * all;
  };
  for (const double s : {0.0, 0.1, 1.0}) {
    CAPTURE(s);
    CHECK(loss({2, 0, 1}, {}, s) == Approx((row_loss(0, 2, s) + row_loss(1, 0, s) + row_loss(2, 1, s)) / 3));
    CHECK(loss({2, 0, 1}, 0, s) == Approx((row_loss(0, 2, s) + row_loss(2, 1, s)) / 2));
    CHECK(loss({2, -100, -100}, -100, s) == Approx(row_loss(0, 2, s)));
    CHECK(std::isnan(loss({1, 1, 1}, 1, s)));
    CHECK(lathe::test::error_label([&] { loss({2, 0, 3}, {}, s); }) == "index_range");
    CHECK(lathe::test::error_label([&] { loss({2, 0, 3}, 1, s); }) == "index_range");
    CHECK(lathe::test::error_label([&] { loss({-1, 0, 1}, {}, s); }) == "index_range");
  }
  const Value hidden = t.input({1, 2}, {nan_value, 0}, f64);
  const Value two = t.input({2, 2}, {0, 0, nan_value, 0}, f64);
  CHECK(std::isnan(t.numbers(cross_entropy(hidden, t.input(HostTensor::from_ints({1}, {0}))))[0]));
  CHECK(t.numbers(cross_entropy(two, t.input(HostTensor::from_ints({2}, {0, 1})), 1))[0] == Approx(std::log(2)));
}

TEST_CASE("dropout drops the same elements in every dtype, a fraction p of them, and scales the others") {
  Interpreted t;
  const std::int64_t n = 4000;
  const Value state = t.input(HostTensor::from_ints({2}, {1234, 7}));
  const auto dropped = [&](DType dtype, double p, std::int64_t stream) {
    const Value ones = full(t.builder, {n}, 1, dtype);
    return t.numbers(t.builder.add(ops::dropout, {ones, state}, {{"p", p}, {"stream", stream}}));
  };
  const Numbers quarter = dropped(f64, 0.25, 0);
  const auto zeros = std::count(quarter.begin(), quarter.end(), 0.0);
  CHECK(std::abs(zeros - n / 4) < 100);
  CHECK(std::count(quarter.begin(), quarter.end(), 1 / 0.75) == n - zeros);
  const Numbers narrow = dropped(bf16, 0.25, 0);
  for (std::size_t i = 0; i < narrow.size(); ++i) CHECK((narrow[i] == 0) == (quarter[i] == 0));
  CHECK(dropped(f64, 0.25, 1) != quarter);
  CHECK(dropped(f64, 0, 0) == Numbers(n, 1.0));
  CHECK(dropped(f64, 1, 0) == Numbers(n, 0.0));
  const Value a = t.input({2}, {1, 2}, f64);
  CHECK(dropout(a, state, 0.5).id() != dropout(a, state, 0.5).id());
}

TEST_CASE("attention weights values by the softmax of masked scores") {
  Interpreted t;
  const Value q = t.input({2, 1}, {1, 2}, f64), k = t.input({3, 1}, {1, -1, 3}, f64);
  const Value v = t.input({3, 2}, {1, 10, 2, 20, 3, 30}, f64);
  const auto expected = [](std::vector<Numbers> scores) {
    Numbers result;
    for (const Numbers& row : scores) {
      const Numbers w = softmax_of(row);
      result.push_back(w[0] + 2 * w[1] + 3 * w[2]);
      result.push_back(10 * (w[0] + 2 * w[1] + 3 * w[2]));
    }
    return result;
  };
  check_near(t.numbers(attention(q, k, v, {}, 0.5, false)), expected({{0.5, -0.5, 1.5}, {1, -1, 3}}));
  check_near(t.numbers(attention(q, k, v, {}, 0.5, true)),
             expected({{0.5, -infinity, -infinity}, {1, -1, -infinity}}));
  const Value seen = t.input({2, 3}, {1, 0, 1, 0, 0, 1}, boolean);
  check_near(t.numbers(attention(q, k, v, seen, 0.5, false)),
             expected({{0.5, -infinity, 1.5}, {-infinity, -infinity, 3}}));
  const Value bias = t.input({3}, {0, 4, -1}, f64);
  check_near(t.numbers(attention(q, k, v, bias, 0.5, false)), expected({{0.5, 3.5, 0.5}, {1, 3, 2}}));
  const Value nothing = t.input({1, 3}, {0, 0, 0}, boolean);
  check_near(t.numbers(attention(q, k, v, nothing, 0.5, false)), Numbers(4, nan_value));
  check_near(t.numbers(attention(q, k, v, nothing, 0.5, false, true)), Numbers(4, 0));
}

TEST_CASE("causal attention with an offset sees that many keys before its first query") {
  Interpreted t;
  const Value q = t.input({2, 1}, {1, 2}, f64), k = t.input({3, 1}, {1, -1, 3}, f64), v = k;
  const auto weighed = [](const Numbers& scores) {
    const Numbers w = softmax_of(scores);
    return w[0] - w[1] + 3 * w[2];
  };
  const auto from = [&](std::int64_t offset, bool zero_masked = false) {
    const Value first = t.input(HostTensor::from_ints({}, {offset}));
    return t.numbers(attention(q, k, v, {}, 0.5, true, zero_masked, first));
  };
  const double one = weighed({0.5, -infinity, -infinity}), two = weighed({1, -1, -infinity});
  check_near(from(0), {one, two});
  check_near(from(1), {weighed({0.5, -0.5, -infinity}), weighed({1, -1, 3})});
  check_near(from(9), {weighed({0.5, -0.5, 1.5}), weighed({1, -1, 3})});
  check_near(from(-1), {nan_value, weighed({1, -infinity, -infinity})});
  check_near(from(-2, true), {0, 0});
  // One per batch, with a mask that has the batch dim.
  const Value seen = t.input({2, 1, 3}, {1, 1, 1, 1, 0, 1}, boolean);
  const Value each = t.input(HostTensor::from_ints({2}, {0, 2}));
  check_near(t.numbers(attention(q, k, v, seen, 0.5, true, false, each)),
             {one, two, weighed({0.5, -infinity, 1.5}), weighed({1, -infinity, 3})});
}

TEST_CASE("dequantize multiplies each block by its scale") {
  Interpreted t;
  const Value q = t.input({2, 4}, {-127, 1, 2, 3, 4, 5, 6, 127}, i8);
  const Value scales = t.input({2, 2}, {0.5, 2, 0, -1});
  CHECK(dequantize(q, scales).dtype() == f64);
  check_near(t.numbers(dequantize(q, scales)), {-63.5, 0.5, 4, 6, 0, 0, -6, -127});
  const Value narrow = cast(scales, bf16);
  CHECK(dequantize(q, narrow).dtype() == bf16);
  check_near(t.numbers(dequantize(q, narrow)), {-63.5, 0.5, 4, 6, 0, 0, -6, -127});
}

TEST_CASE("rope rotates the halves of the last dim") {
  Interpreted t;
  const double c = std::cos(0.3), s = std::sin(0.3);
  const Value x = t.input({4}, {1, 2, 3, 4}, f64);
  const Value cosines = t.input({4}, {1, c, 1, c}, f64), sines = t.input({4}, {0, s, 0, s}, f64);
  check_near(t.numbers(rope(x, cosines, sines)), {1, 2 * c - 4 * s, 3, 4 * c + 2 * s});
  const Dim d{"d"};
  const Value half_known = t.builder.argument(ops::input, "z", f64, {d * 2});
  CHECK(rope(half_known, half_known, half_known).shape() == Shape{d * 2});
}

TEST_CASE("log1p and expm1 keep tiny numbers, and both ends of the range") {
  Interpreted t;
  const Numbers points{1e-300, -1e-20, 3e-9, -2e-4, 0.3, -0.9, 1.5, 20, 700, -40};
  const Value x = t.input({static_cast<std::int64_t>(points.size())}, points);
  const Numbers found = t.numbers(expm1(x));
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(found[i] == Approx(std::expm1(points[i])).epsilon(1e-15));
  const Numbers logs = t.numbers(log1p(x));
  for (std::size_t i = 0; i + 1 < points.size(); ++i) CHECK(logs[i] == Approx(std::log1p(points[i])).epsilon(1e-15));
  CHECK(std::isnan(logs.back()));
  CHECK(t.numbers(log1p(t.input({4}, {-1, infinity, 1e300, 0}))) == Numbers{-infinity, infinity, std::log(1e300), 0});
  CHECK(t.numbers(expm1(t.input({3}, {-infinity, infinity, 0}))) == Numbers{-1, infinity, 0});
}

TEST_CASE("16-bit composites compute inside in f32") {
  const std::vector<const Op*> computed_in_f32 = {
      &ops::softmax,    &ops::log_softmax,   &ops::logsumexp, &ops::mean,  &ops::var,
      &ops::layer_norm, &ops::rms_norm,      &ops::gelu,      &ops::silu,  &ops::sigmoid,
      &ops::softplus,   &ops::cross_entropy, &ops::log1p,     &ops::expm1,
  };
  for (const Op* op : computed_in_f32) {
    CAPTURE(op->name.value);
    Sample sample = op->samples.value()[0];
    for (SampleOperand& operand : sample.operands)
      if (operand.dtype == f64) operand.dtype = bf16;
    GraphBuilder b("g");
    const auto operands = ir::test::sample_operands(b, sample);
    const Value value = b.add(*op, operands, sample.attrs);
    const int before = b.graph().size();
    const Value result = op->as<Composite>()->expand(b, value.node(), operands);
    CHECK(result.dtype() == bf16);
    for (int i = before; i < result.id().index; ++i) CHECK(b.graph()[ValueId{i}].type.dtype != bf16);
  }
}
