#include <catch2/catch.hpp>
#include <limits>

#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

TEST_CASE("cumsum: inclusive and exclusive, in both directions") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(t.numbers(cumsum(a, 1)) == Numbers{1, 3, 6, 4, 9, 15});
  CHECK(t.numbers(cumsum(a, 0)) == Numbers{1, 2, 3, 5, 7, 9});
  CHECK(t.numbers(cumsum(a, -1, true)) == Numbers{0, 1, 3, 0, 4, 9});
  CHECK(t.numbers(cumsum(a, 1, false, true)) == Numbers{6, 5, 3, 15, 11, 6});
  CHECK(t.numbers(cumsum(a, 1, true, true)) == Numbers{5, 3, 0, 11, 6, 0});
  CHECK(error_label([&] { cumsum(a, 2); }) == "dim_range");
  CHECK(error_label([&] { cumsum(eq(a, a), 0); }) == "dtype_kind");
}

TEST_CASE("linear_recurrence: each state is the factor times the one before, plus the term") {
  Interpreted t;
  const Value a = t.input({2, 3}, {9, 2, 3, 9, 0.5, -1}), b = t.input({2, 3}, {1, 1, 1, 4, 0, 2});
  CHECK(t.numbers(linear_recurrence(a, b, 1)) == Numbers{1, 3, 10, 4, 2, 0});
  CHECK(t.numbers(linear_recurrence(a, b, -2)) == Numbers{1, 1, 1, 13, 0.5, 1});
  CHECK(t.numbers(linear_recurrence(a, b, 1, true)) == Numbers{28, 3, 1, 13, 1, 2});
  CHECK(error_label([&] { linear_recurrence(a, b, 2); }) == "dim_range");
  CHECK(error_label([&] { linear_recurrence(a, t.input({2, 2}, {1, 2, 3, 4}), 1); }) == "recurrence_shape");
}

TEST_CASE("argsort is stable, and NaN sorts after every number") {
  Interpreted t;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Value a = t.input({8}, {2, nan, -inf, 1, 2, inf, nan, 1});
  CHECK(t.numbers(argsort(a, 0)) == Numbers{2, 3, 7, 0, 4, 5, 1, 6});
  CHECK(t.numbers(argsort(a, 0, true)) == Numbers{1, 6, 5, 0, 4, 3, 7, 2});
  const Value zeros = t.input({4}, {0.0, -0.0, 0.0, -0.0});
  CHECK(t.numbers(argsort(zeros, 0)) == Numbers{0, 1, 2, 3});
  const Value columns = t.input(HostTensor::from_ints({3, 2}, {3, 1, 1, 1, 2, 0}));
  CHECK(t.numbers(argsort(columns, 0)) == Numbers{1, 2, 2, 0, 0, 1});
  CHECK(t.numbers(take_along(columns, argsort(columns, 0), 0)) == Numbers{1, 0, 2, 1, 3, 1});
}

TEST_CASE("top_k is the start of an argsort") {
  Interpreted t;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Value a = t.input({2, 4}, {1, 3, 3, 2, 5, nan, 5, 5});
  CHECK(t.numbers(top_k(a, 2)) == Numbers{1, 2, 1, 0});
  CHECK(t.numbers(top_k(a, 3, 1, false)) == Numbers{0, 3, 1, 0, 2, 3});
  CHECK(t.numbers(top_k(a, 1, 0)) == Numbers{1, 1, 1, 1});
  CHECK(t.numbers(top_k(a, 0)).empty());
  CHECK(error_label([&] { top_k(a, 5); }) == "top_k_size");
  CHECK(error_label([&] { top_k(a, -1); }) == "dim_negative");
  const Dim k("k"), n("n");
  const Value b = t.input(HostTensor::from({3}, {1, 2, 3}, f64), {n});
  (void)t.input(HostTensor::from({4}, {1, 2, 3, 4}, f64), {k});
  CHECK(error_label([&] { t.run(top_k(b, k)); }) == "top_k_size");
}

TEST_CASE("scatter sets elements along a dim, the last of equal indices wins") {
  Interpreted t;
  const Value a = t.input({2, 3}, {1, 2, 3, 4, 5, 6});
  const Value along_rows = t.input(HostTensor::from_ints({2, 2}, {2, 0, 1, 1})),
              rows = t.input({2, 2}, {7, 8, 9, 10});
  CHECK(t.numbers(scatter(a, along_rows, rows, 1)) == Numbers{8, 2, 7, 4, 10, 6});
  const Value along_columns = t.input(HostTensor::from_ints({1, 3}, {1, 0, 1}, i32)),
              row = t.input({1, 3}, {7, 8, 9});
  CHECK(t.numbers(scatter(a, along_columns, row, 0)) == Numbers{1, 8, 3, 7, 5, 9});
  const Value deep = t.input({1, 2, 2}, {1, 2, 3, 4}),
              indices = t.input(HostTensor::from_ints({1, 2, 2}, {1, 0, 1, 1}));
  CHECK(t.numbers(scatter(deep, indices, deep, 1)) == Numbers{1, 2, 3, 4});
  CHECK(error_label([&] { scatter(a, along_rows, row, 1); }) == "scatter_indices");
  CHECK(error_label([&] { scatter(a, select(along_rows, 0, 0), rows, 1); }) == "scatter_indices");
  CHECK(error_label([&] { scatter(a, along_columns, row, 1); }) == "update_rows_shape");
  std::string text;
  const Value outside = t.input(HostTensor::from_ints({2, 2}, {0, 1, 2, 3}));
  CHECK(error_label([&] { t.run(scatter(a, outside, rows, 1)); }, &text) == "index_range");
  CHECK(text.find("index 3 at [1, 1] is out of range for a dim of size 3") != std::string::npos);
}

TEST_CASE("grouped_matmul multiplies each segment of rows by its own weight, segment_outer rows by rows") {
  Interpreted t;
  const Value x = t.input({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Value offsets = t.input(HostTensor::from_ints({4}, {0, 1, 1, 3}));
  const Value w = t.input({1, 2}, {1, 1}), v = t.input({1, 2}, {9, 9}), u = t.input({1, 2}, {1, -1});
  const Value all[] = {w, v, u};
  CHECK(t.numbers(grouped_matmul(x, offsets, all)) == Numbers{3, -1, -1, 0});
  const Value y = t.input({4, 1}, {1, 2, 3, 4});
  CHECK(t.numbers(segment_outer(y, x, offsets, 0)) == Numbers{1, 2});
  CHECK(t.numbers(segment_outer(y, x, offsets, 1)) == Numbers{0, 0});
  CHECK(t.numbers(segment_outer(y, x, offsets, 2)) == Numbers{21, 26});
  CHECK(error_label([&] { grouped_matmul(x, offsets, std::span(all).first(2)); }) == "grouped_offsets");
  CHECK(error_label([&] { segment_outer(w, x, offsets, 2); }) == "grouped_inner");
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{0, 2, 1, 3}, {0, 1, 2, 5}, {-1, 0, 0, 0}}) {
    std::string text;
    const Value bad = t.input(HostTensor::from_ints({4}, wrong));
    CHECK(error_label([&] { t.run(grouped_matmul(x, bad, all)); }, &text) == "index_range");
    CHECK(text.find("is out of range for segments of 4 rows") != std::string::npos);
  }
}
