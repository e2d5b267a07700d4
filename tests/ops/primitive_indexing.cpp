#include <catch2/catch.hpp>

#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;

TEST_CASE("gather along any dim, and scatter_add") {
  Interpreted t;
  const Value table = t.input({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value rows = t.input(HostTensor::from_ints({2, 2}, {2, 0, 0, 1}));
  CHECK(gather(table, rows).shape() == Shape{2, 2, 2});
  CHECK(t.numbers(gather(table, rows)) == Numbers{5, 6, 1, 2, 1, 2, 3, 4});
  const Value columns = t.input(HostTensor::from_ints({3}, {1, 1, 0}, i32));
  CHECK(t.numbers(gather(table, columns, -1)) == Numbers{2, 2, 1, 4, 4, 3, 6, 6, 5});
  CHECK(t.numbers(scatter_add(rows, gather(table, rows), 3)) == Numbers{2, 4, 3, 4, 5, 6});
  const Value updates = t.input({1, 3}, {1, 10, 100});
  CHECK(t.numbers(scatter_add(columns, updates, 2, 1)) == Numbers{100, 11});
  CHECK(error_label([&] { gather(table, table); }) == "index_dtype");
  CHECK(error_label([&] { gather(table, rows, 2); }) == "dim_range");
  CHECK(error_label([&] { scatter_add(rows, updates, 3); }) == "scatter_shape");
  CHECK(error_label([&] { scatter_add(columns, updates, -1, 1); }) == "dim_negative");
}

TEST_CASE("update_rows replaces rows, the last of equal positions wins") {
  Interpreted t;
  const Value a = t.input({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value at = t.input(HostTensor::from_ints({2}, {2, 0}));
  const Value rows = t.input({2, 2}, {7, 8, 9, 10});
  CHECK(t.numbers(update_rows(a, at, rows)) == Numbers{9, 10, 3, 4, 7, 8});
  const Value twice = t.input(HostTensor::from_ints({2}, {1, 1}, i32));
  CHECK(t.numbers(update_rows(a, twice, rows)) == Numbers{1, 2, 9, 10, 5, 6});
  const Value columns = t.input({3, 1}, {7, 8, 9}), each = t.input(HostTensor::from_ints({3, 1}, {0, 1, 0}));
  CHECK(t.numbers(update_rows(a, each, columns, -1)) == Numbers{7, 2, 3, 8, 9, 6});
  CHECK(error_label([&] { update_rows(a, a, rows); }) == "index_dtype");
  CHECK(error_label([&] { update_rows(a, at, cast(rows, f32)); }) == "dtype_match");
  const Value lists = t.input(HostTensor::from_ints({3, 1, 1}, {0, 1, 0}));
  CHECK(error_label([&] { update_rows(a, lists, rows); }) == "update_rows_positions");
  CHECK(error_label([&] { update_rows(a, at, columns); }) == "update_rows_shape");
  std::string text;
  const Value outside = t.input(HostTensor::from_ints({2}, {0, 3}));
  CHECK(error_label([&] { t.run(update_rows(a, outside, rows)); }, &text) == "index_range");
  CHECK(text.find("index 3 at [1] is out of range for a dim of size 3") != std::string::npos);
}

TEST_CASE("an index out of range is an error at the line of the op") {
  Interpreted t;
  const GraphBuilder::At at(t.builder, Location("model.cpp", 7));
  const Value table = t.input({3}, {1, 2, 3});
  const Value looked_up = gather(table, t.input(HostTensor::from_ints({2}, {0, 3})));
  std::string text;
  CHECK(error_label([&] { t.run(looked_up); }, &text) == "index_range");
  CHECK(text ==
        "model.cpp:7: gather: index 3 at [1] is out of range for a dim of size 3  [index_range]\n  use 0 to 2");
  const Value negative = gather(table, t.input(HostTensor::from_ints({1}, {-1})));
  CHECK(error_label([&] { t.run(negative); }) == "index_range");
}

TEST_CASE("take_along follows torch.gather, also for unknown sizes") {
  Interpreted t;
  const Dim n("n"), m("m");
  const Value a = t.input(HostTensor::from({2, 3}, {1, 2, 3, 4, 5, 6}, f64), {n, m});
  const Value along_rows = t.input(HostTensor::from_ints({2, 2}, {2, 0, 1, 1}), {n, Dim("k")});
  CHECK(t.numbers(take_along(a, along_rows, 1)) == Numbers{3, 1, 5, 5});
  const Value along_columns = t.input(HostTensor::from_ints({1, 3}, {1, 0, 1}), {1, m});
  CHECK(t.numbers(take_along(a, along_columns, 0)) == Numbers{4, 2, 6});
  CHECK(error_label([&] { take_along(a, select(along_rows, 0, 0), 1); }) == "take_along_rank");
  // 3 would be the first element of the second row, -1 the last one of the first.
  for (const std::int64_t wrong : {3, -1}) {
    const Value indices = t.input(HostTensor::from_ints({2, 2}, {0, 1, 2, wrong}), {n, Dim("k")});
    CHECK(error_label([&] { t.run(take_along(a, indices, 1)); }) == "index_range");
  }
}

TEST_CASE("concat, stack and pad") {
  Interpreted t;
  const Value a = t.input({2, 1}, {1, 2}), b = t.input({2, 2}, {3, 4, 5, 6});
  const Value parts[] = {a, b};
  CHECK(t.numbers(concat(parts, 1)) == Numbers{1, 3, 4, 2, 5, 6});
  const Value twice[] = {b, transpose(b, 0, 1)};
  CHECK(t.numbers(concat(twice, 0)) == Numbers{3, 4, 5, 6, 3, 5, 4, 6});
  CHECK(stack(twice, 0).shape() == Shape{2, 2, 2});
  CHECK(t.numbers(stack(twice, -1)) == Numbers{3, 3, 4, 5, 5, 4, 6, 6});
  CHECK(t.numbers(pad(b, 1, 1, 0)) == Numbers{0, 3, 4, 0, 5, 6});
  CHECK(t.numbers(pad(b, 0, 0, 1)) == Numbers{3, 4, 5, 6, 0, 0});
  CHECK(t.numbers(repeat_interleave(b, 2, 1)) == Numbers{3, 3, 4, 4, 5, 5, 6, 6});
  const Value flat[] = {a, select(b, 0, 0)};
  CHECK(error_label([&] { concat(flat, 0); }) == "concat_rank");
  CHECK(error_label([&] { concat(parts, 0); }) == "concat_shape");
  CHECK(error_label([&] { concat({}, 0); }) == "op_arity");
  CHECK(error_label([&] { pad(a, 0, -1, 0); }) == "pad_size");
  CHECK(error_label([&] { repeat_interleave(a, 0, 0); }) == "repeat_times");
}

TEST_CASE("pad by sizes that are unknown until run time") {
  Interpreted t;
  const Dim n("n");
  const Value a = t.input(HostTensor::from({2}, {1, 2}, f64), {n});
  CHECK(pad(a, 0, n, n).shape()[0] == n * 3);
  CHECK(t.numbers(pad(a, 0, n, n - 1)) == Numbers{0, 0, 1, 2, 0});
}
