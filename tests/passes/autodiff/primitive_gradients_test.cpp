#include <catch2/catch.hpp>
#include <cmath>

#include "ir/support/tensors/complex_elements.h"
#include "passes/autodiff/autodiff.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

/// Gradients that finite differences cannot check: ties, kinks, zeros, complex numbers. The expected values are
/// PyTorch's.
namespace {

/// d sum(y) / d x
Value gradient(Interpreted& t, const Value& y, const Value& x) {
  return gradients(t.builder, sum(y), {}, std::span(&x, 1), Unused::zeros)[0];
}

}  // namespace

TEST_CASE("ties share the gradient", "[gradients]") {
  Interpreted t;
  const Value a = t.input({2, 3}, {5, 5, 1, 2, 3, 3}), b = t.input({3}, {5, 7, 0});
  CHECK(t.numbers(gradient(t, max(a, {1}), a)) == Numbers{0.5, 0.5, 0, 0, 0.5, 0.5});
  CHECK(t.numbers(gradient(t, min(a, {0}, true), a)) == Numbers{0, 0, 1, 1, 1, 0});
  CHECK(t.numbers(gradient(t, max(a), a)) == Numbers{0.5, 0.5, 0, 0, 0, 0});
  CHECK(t.numbers(gradient(t, maximum(a, b), a)) == Numbers{0.5, 0, 1, 0, 0, 1});
  CHECK(t.numbers(gradient(t, maximum(a, b), b)) == Numbers{1.5, 2, 0});
  CHECK(t.numbers(gradient(t, minimum(a, b), b)) == Numbers{0.5, 0, 2});
}

TEST_CASE("ties are counted in a dtype that can represent their number", "[gradients]") {
  Interpreted t;
  for (const DType dtype : {bf16, f16}) {
    const Value a = t.input(HostTensor(dtype, {70000}));
    const double share = HostTensor::scalar(1.0 / 70000).cast(dtype).get(0);
    CHECK(share > 0);
    CHECK(t.numbers(gradient(t, max(a, {0}), a)) == Numbers(70000, share));
    CHECK(t.numbers(gradient(t, min(a, {0}, true), a)) == Numbers(70000, share));
  }
  const auto counted_in = [](const Dim& size, DType dtype) {
    GraphBuilder b("g");
    const Value a = b.argument(ops::input, "a", dtype, {size});
    (void)gradients(b, sum(max(a, {0})), {}, std::span(&a, 1));
    for (const Node& node : b.graph().nodes)
      if (node.op == &ops::sum && b.graph()[node.operands[0]].op == &ops::cast) return node.type.dtype;
    return boolean;
  };
  CHECK(counted_in(1 << 24, f16) == f32);
  CHECK(counted_in((1 << 24) + 1, f32) == i64);
  CHECK(counted_in(Dim("n"), f32) == i64);
  CHECK(counted_in(Dim("n"), f64) == f64);
}

TEST_CASE("gradients at kinks and steps", "[gradients]") {
  Interpreted t;
  const Value a = t.input({3}, {-1.5, 0, 2.5});
  CHECK(t.numbers(gradient(t, abs(a), a)) == Numbers{-1, 0, 1});
  for (const Value& y : {sign(a), floor(a), round(a)}) CHECK(t.numbers(gradient(t, y, a)) == Numbers{0, 0, 0});
  CHECK(t.numbers(gradient(t, cast(cast(a, i64), f64), a)) == Numbers{0, 0, 0});
}

TEST_CASE("powers of zero and to zero have the gradients of their limits", "[gradients]") {
  Interpreted t;
  const Value a = t.input({3}, {0, 0, 2}), b = t.input({3}, {0, 2, 0});
  const Value y = pow(a, b);
  CHECK(t.numbers(gradient(t, y, a)) == Numbers{0, 0, 0});
  CHECK(t.numbers(gradient(t, y, b))[0] == 0);
  CHECK(t.numbers(gradient(t, y, b))[1] == 0);
  CHECK(t.numbers(gradient(t, y, b))[2] == Approx(std::log(2)));
  const Value x = t.input({2}, {0, -3}), square = pow(x, 2.0);
  const Value first = gradient(t, square, x);
  CHECK(t.numbers(first) == Numbers{0, -6});
  CHECK(t.numbers(gradient(t, first, x)) == Numbers{2, 2});
}

TEST_CASE("elements that where does not select have no gradient, even if infinite", "[gradients]") {
  Interpreted t;
  const Value scores = t.input({2}, {1, 2});
  CHECK(t.numbers(gradient(t, where(gt(scores, 1.5), scores, -1e9), scores)) == Numbers{0, 1});
  // The incoming gradient is infinite where the condition is false; multiplying it by the mask would give NaN.
  const Value a = t.input({2}, {0, 4});
  CHECK(t.numbers(gradient(t, sqrt(where(gt(a, 0.0), a, 0.0)), a)) == Numbers{0, 0.25});
}

TEST_CASE("repeated indices accumulate, skipped elements get zeros, repeats are summed", "[gradients]") {
  Interpreted t;
  const Value a = t.input({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value rows = t.input(HostTensor::from_ints({3}, {2, 0, 2}));
  CHECK(t.numbers(gradient(t, gather(a, rows), a)) == Numbers{1, 1, 0, 0, 2, 2});
  CHECK(t.numbers(gradient(t, slice(a, 0, 0, 3, 2), a)) == Numbers{1, 1, 0, 0, 1, 1});
  CHECK(t.numbers(gradient(t, slice(a, 0, 1, 3, 4), a)) == Numbers{0, 0, 1, 1, 0, 0});
  CHECK(t.numbers(gradient(t, expand(a, {4, 3, 2}), a)) == Numbers{4, 4, 4, 4, 4, 4});
  CHECK(t.numbers(gradient(t, repeat_interleave(a, 3, 0), a)) == Numbers{3, 3, 3, 3, 3, 3});
  CHECK(t.numbers(gradient(t, diagonal(slice(a, 0, 0, 2), 0, 1), a)) == Numbers{1, 0, 0, 1, 0, 0});
  const Value twice[] = {a, a};
  CHECK(t.numbers(gradient(t, concat(twice, 0), a)) == Numbers{2, 2, 2, 2, 2, 2});
}

TEST_CASE("the gradient of a complex product is g * conj(b)", "[gradients]") {
  Interpreted t;
  HostTensor two(c128, {2});
  set_complex(two, 0, {1, 2});
  set_complex(two, 1, {0, -1});
  const Value a = t.input(two), b = t.input({2, 2}, {3, 4, 5, -6});
  const Value z = view_as_complex(b);
  const Value cotangent = literal(t.builder, {2}, {1, 0, 0, 1}, c128);
  const Value wrt[] = {a, b};
  const Gradients g = gradients(t.builder, mul(a, z), cotangent, wrt);
  const auto values = t.complexes(g[0]);
  CHECK(values[0] == std::complex<double>(3, -4));                              // 1 * conj(3 + 4i)
  CHECK(values[1] == std::complex<double>(0, 1) * std::complex<double>(5, 6));  // i * conj(5 - 6i)
  CHECK(t.numbers(g[1]) == Numbers{1, -2, -1, 0});                              // 1 * conj(1 + 2i), i * conj(-i)
}
