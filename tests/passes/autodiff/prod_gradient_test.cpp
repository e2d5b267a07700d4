#include <catch2/catch.hpp>

#include "ir/ops/functional/functional.h"
#include "passes/autodiff/autodiff.h"
#include "tests/support/graphs/interpreted.h"

/// The gradient of prod: products of the other elements, by a tree of pairs for a known size, otherwise by n
/// products.
using namespace lathe;
using namespace lathe::ir;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

namespace {

Value gradient_of(Interpreted& t, const Value& output, const Value& wrt) {
  return gradients(t.builder, output, std::nullopt, std::vector<Value>{wrt})[0];
}

}  // namespace

TEST_CASE("prod: the gradient where none, one and two elements are 0") {
  for (const Dim& size : {Dim(5), Dim("n")}) {
    const auto gradient = [&](const Numbers& values) {
      Interpreted t;
      const Value x = t.input(HostTensor::from({5}, values, f64), {size});
      return t.numbers(gradient_of(t, prod(x), x));
    };
    CHECK(gradient({2, 3, 4, 5, 6}) == Numbers{360, 240, 180, 144, 120});
    CHECK(gradient({2, 0, 4, 5, 6}) == Numbers{0, 240, 0, 0, 0});
    CHECK(gradient({2, 0, 4, 0, 6}) == Numbers{0, 0, 0, 0, 0});
  }
}

TEST_CASE("prod: the gradient over two dims") {
  for (const Dim& size : {Dim(2), Dim("n")}) {
    Interpreted t;
    const Value x = t.input(HostTensor::from({2, 3}, {1, 2, 0, 4, 5, 6}, f64), {size, 3});
    CHECK(t.numbers(gradient_of(t, prod(x), x)) == Numbers{0, 0, 240, 0, 0, 0});
  }
}

TEST_CASE("prod: second derivatives where two elements are 0") {
  for (const Dim& size : {Dim(3), Dim("n")}) {
    Interpreted t;
    const Value x = t.input(HostTensor::from({3}, {0, 7, 0}, f64), {size});
    const Value first = gradient_of(t, prod(x), x);
    CHECK(t.numbers(gradient_of(t, select(first, 0, 0), x)) == Numbers{0, 0, 7});
  }
}
