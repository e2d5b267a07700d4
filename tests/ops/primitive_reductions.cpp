#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

namespace {
const double infinity = std::numeric_limits<double>::infinity();
}

TEST_CASE("sum, max and min over dims") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 5, 3, -4, 0, 2});
  CHECK(t.numbers(sum(a, {1})) == Numbers{9, -2});
  CHECK(t.numbers(sum(a, {0})) == Numbers{-3, 5, 5});
  CHECK(t.numbers(sum(a)) == Numbers{7});
  CHECK(sum(a, {-1}, true).shape() == Shape{2, 1});
  CHECK(t.numbers(max(a, {1})) == Numbers{5, 2});
  CHECK(t.numbers(min(a, {0, 1})) == Numbers{-4});
  const Value poisoned = t.input({2}, {1, std::nan("")});
  CHECK(std::isnan(t.numbers(max(poisoned))[0]));
  CHECK(error_label([&] { sum(a, {0, -2}); }) == "dim_repeat");
  CHECK(error_label([&] { sum(a, {2}); }) == "dim_range");
  CHECK(error_label([&] { sum(lt(a, a)); }) == "dtype_kind");
}

TEST_CASE("prod over dims") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 5, 3, -4, 0, 2});
  CHECK(t.numbers(prod(a, {1})) == Numbers{15, 0});
  CHECK(t.numbers(prod(a, {0}, true)) == Numbers{-4, 0, 6});
  CHECK(t.numbers(prod(a)) == Numbers{0});
  CHECK(t.numbers(prod(t.input({2, 0}, {}), {1})) == Numbers{1, 1});
  CHECK(t.run(prod(t.input({3}, {1 << 20, 1 << 20, 1 << 20}, i64))).get_int(0) == std::int64_t{1} << 60);
  CHECK(error_label([&] { prod(lt(a, a)); }) == "dtype_kind");
}

TEST_CASE("reductions over no elements give the identity") {
  Interpreted t;
  const Value a = t.input({2, 0}, {});
  CHECK(t.numbers(sum(a, {1})) == Numbers{0, 0});
  CHECK(t.numbers(max(a, {1})) == Numbers{-infinity, -infinity});
  CHECK(t.numbers(min(a, {1})) == Numbers{infinity, infinity});
  CHECK(t.numbers(max(t.input({0}, {}, i32))) == Numbers{-2147483648.0});
  CHECK(sum(a, {0}).shape() == Shape{0});
}

TEST_CASE("sum_to is the inverse of a broadcast") {
  Interpreted t;
  const Value a = t.input({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(t.numbers(sum_to(a, {2, 1})) == Numbers{30, 48});
  CHECK(sum_to(a, {2, 1}).shape() == Shape{2, 1});
  CHECK(t.numbers(sum_to(a, {3})) == Numbers{22, 26, 30});
  CHECK(sum_to(a, {2, 2, 3}).id() == a.id());
  CHECK(error_label([&] { sum_to(a, {1, 2, 2, 3}); }) == "sum_to_rank");
}

TEST_CASE("contract: batch, free and contracted labels in any order") {
  Interpreted t;
  const Value a = t.input({2, 2}, {1, 2, 3, 4}), b = t.input({2, 2}, {5, 6, 7, 8});
  CHECK(t.numbers(contract(a, b, "ik,kj->ij")) == Numbers{19, 22, 43, 50});
  CHECK(t.numbers(contract(a, b, "ik,jk->ji")) == Numbers{17, 39, 23, 53});
  CHECK(t.numbers(contract(a, b, "bi,bi->b")) == Numbers{17, 53});
  CHECK(t.numbers(contract(a, b, "ij,ij->")) == Numbers{70});
  CHECK(t.numbers(contract(t.input({2}, {1, 2}), t.input({2}, {3, 4}), "i,j->ji")) == Numbers{3, 6, 4, 8});
  CHECK(t.numbers(contract(t.input({2, 0}, {}), t.input({0, 1}, {}), "ik,kj->ij")) == Numbers{0, 0});
  // A strided operand.
  CHECK(t.numbers(contract(transpose(a, 0, 1), b, "ki,kj->ij")) == Numbers{19, 22, 43, 50});
  const Value i = t.input(HostTensor::from_ints({1, 1}, {3037000499}));
  CHECK(t.run(contract(i, i, "ik,kj->ij")).get_int(0) == 9223372030926249001LL);
}

TEST_CASE("contract rejects invalid specs") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(error_label([&] { contract(a, a, "ik kj"); }) == "contract_spec");
  CHECK(error_label([&] { contract(a, a, "ii,ij->j"); }) == "contract_spec");
  CHECK(error_label([&] { contract(a, a, "ij,ij->k"); }) == "contract_spec");
  CHECK(error_label([&] { contract(a, a, "ij,jk->i"); }) == "contract_spec");
  CHECK(error_label([&] { contract(a, a, "ijk,jk->i"); }) == "contract_rank");
  CHECK(error_label([&] { contract(a, a, "ik,kj->ij"); }) == "contract_size");
  CHECK(error_label([&] { contract(a, cast(a, f32), "ik,jk->ij"); }) == "dtype_match");
}
