#include <catch2/catch.hpp>
#include <cmath>

#include "ir/ops/functional/functional_composites.h"
#include "tests/support/graphs/interpreted.h"

/// Triangular factors and systems at known values.
using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

TEST_CASE("cholesky: the lower factor of the symmetric part") {
  Interpreted t;
  const Numbers factor{2, 0, 0, 6, 1, 0, -8, 5, 3};  // of a matrix with whole elements
  const Value a = t.input({3, 3}, {4, 12, -16, 12, 37, -43, -16, -43, 98});
  CHECK(t.numbers(cholesky(a)) == factor);
  const Value skewed = t.input({3, 3}, {4, 10, -16, 14, 37, -43, -16, -43, 98});
  CHECK(t.numbers(cholesky(skewed)) == factor);
  CHECK(t.numbers(cholesky(t.input({2, 1, 1}, {4, 9}))) == Numbers{2, 3});
}

TEST_CASE("cholesky: NaN from the row and column on at which the matrix is not positive definite") {
  Interpreted t;
  const Numbers found = t.numbers(cholesky(t.input({2, 3, 3}, {4, 2, 0, 2, 1, 0, 0, 0, 1,  // the pivot of row 1 is 0
                                                               1, 0, 0, 0, 1, 0, 0, 0, -1})));
  CHECK((found[0] == 2 && found[3] == 1 && found[6] == 0));
  for (const std::size_t i : {4, 7, 8}) CHECK(std::isnan(found[i]));
  for (const std::size_t i : {1, 2, 5}) CHECK(found[i] == 0);
  CHECK(Numbers(found.begin() + 9, found.begin() + 17) == Numbers{1, 0, 0, 0, 1, 0, 0, 0});
  CHECK(std::isnan(found[17]));
}

TEST_CASE("solve_triangular: each triangle, transposed or not, with its diagonal or ones") {
  Interpreted t;
  const Value a = t.input({2, 2}, {2, 3, 4, 5}), b = t.input({2, 2}, {2, 4, 14, 23});
  CHECK(t.numbers(solve_triangular(a, b)) == Numbers{1, 2, 2, 3});
  CHECK(t.numbers(solve_triangular(a, b, true)) == Numbers{(2 - 3 * 2.8) / 2, (4 - 3 * 4.6) / 2, 2.8, 4.6});
  CHECK(t.numbers(solve_triangular(a, b, false, true)) == Numbers{(2 - 4 * 2.8) / 2, (4 - 4 * 4.6) / 2, 2.8, 4.6});
  CHECK(t.numbers(solve_triangular(a, b, true, true)) == Numbers{1, 2, 2.2, 3.4});
  CHECK(t.numbers(solve_triangular(a, b, false, false, true)) == Numbers{2, 4, 6, 7});
  CHECK(t.numbers(solve_triangular(a, b, true, false, true)) == Numbers{2 - 42, 4 - 69, 14, 23});
  CHECK(std::isinf(t.numbers(solve_triangular(t.input({1, 1}, {0}), t.input({1, 1}, {1})))[0]));
}

TEST_CASE("triangular: sizes that are known at run time must match") {
  const Dim n("n"), m("m");
  Interpreted t;
  const Value a = t.input(HostTensor::from({2, 2}, {1, 0, 0, 1}, f64), {n, n});
  const Value b = t.input(HostTensor::from({3, 1}, {1, 2, 3}, f64), {m, 1});
  CHECK(error_label([&] { t.run(solve_triangular(a, b)); }) == "solve_shape");
  Interpreted other;
  const Value wide = other.input(HostTensor::from({2, 3}, {1, 0, 0, 0, 1, 0}, f64), {n, m});
  CHECK(error_label([&] { other.run(cholesky(wide)); }) == "matrix_square");
}
