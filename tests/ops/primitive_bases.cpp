#include <catch2/catch.hpp>
#include <cmath>

#include "ir/ops/functional/functional_composites.h"
#include "tests/support/graphs/interpreted.h"

/// Orthonormal bases of matrices at known values.
using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

namespace {

void check_close(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12));
}

}  // namespace

TEST_CASE("orthonormal_basis: a diagonal of r that is not negative") {
  Interpreted t;
  check_close(t.numbers(orthonormal_basis(t.input({2, 2}, {3, 1, 4, 2}))), {0.6, -0.8, 0.8, 0.6});
  check_close(t.numbers(orthonormal_basis(t.input({2, 2}, {-3, 0, 0, -5}))), {-1, 0, 0, -1});
  check_close(t.numbers(orthonormal_basis(t.input({3, 1}, {0, 3, 4}))), {0, 0.6, 0.8});
  const Value dependent = t.input({3, 2}, {1, 2, 2, 4, 2, 4});  // the second column completes the basis
  const Value q = orthonormal_basis(dependent);
  check_close(t.numbers(matmul(transpose(q, 0, 1), q)), {1, 0, 0, 1});
  check_close(t.numbers(orthonormal_basis(t.input({2, 2}, {0, 0, 0, 0}))), {1, 0, 0, 1});
}

TEST_CASE("eigenvectors: of the symmetric part, and NaN where it is not finite") {
  Interpreted t;
  const double r = std::sqrt(0.5);
  check_close(t.numbers(eigenvectors(t.input({2, 2}, {2, 1, 1, 2}))), {r, r, -r, r});
  check_close(t.numbers(eigenvectors(t.input({2, 2}, {2, 0, 2, 2}))), {r, r, -r, r});
  CHECK(t.numbers(eigenvectors(t.input({2, 2}, {5, 0, 0, -1}))) == Numbers{1, 0, 0, 1});
  for (const double x : t.numbers(eigenvectors(t.input({2, 2}, {1, INFINITY, INFINITY, 1})))) CHECK(std::isnan(x));
}

TEST_CASE("bases: the third operand where the second one is false") {
  Interpreted t;
  const Value a = t.input({2, 2}, {3, 1, 4, 2}), other = t.input({2, 2}, {5, 6, 7, 8});
  const Value one = sum(t.input({1}, {1}), {0}), yes = eq(one, 1.0), no = eq(one, 2.0);
  check_close(t.numbers(orthonormal_basis(a, yes, other)), {0.6, -0.8, 0.8, 0.6});
  CHECK(t.numbers(orthonormal_basis(a, no, other)) == Numbers{5, 6, 7, 8});
  CHECK(t.numbers(eigenvectors(a, no, other)) == Numbers{5, 6, 7, 8});
}

TEST_CASE("bases: sizes that are known at run time must match") {
  const Dim n("n"), m("m");
  Interpreted t;
  const Value wide = t.input(HostTensor::from({2, 3}, {1, 0, 0, 0, 1, 0}, f64), {n, m});
  CHECK(error_label([&] { t.run(orthonormal_basis(wide)); }) == "basis_columns");
  Interpreted other;
  const Value square = other.input(HostTensor::from({2, 3}, {1, 0, 0, 0, 1, 0}, f64), {n, m});
  CHECK(error_label([&] { other.run(eigenvectors(square)); }) == "matrix_square");
}
