#include "passes/fusion/few_rows/read_before_append.h"

#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"

using namespace lathe;
using Catch::Contains;

namespace {

/// A query of some rows that reads a cache of 9 rows after `rows` rows are appended at %at, and then `more`.
ir::Graph graph_of(const std::string& query, const std::string& positions, int rows, const std::string& more = "") {
  return ir::parse_graph(fmt::format(R"(graph @g(input %q: f32[2, {}, 8], input %row: f32[2, {}, 8], input %at: {},
    state %cache: f32[2, 9, 8]) {{
  %1 = update_rows %cache, %at, %row {{dim=1}}
  %2 = slice %1 {{dim=1, start=0, stop=5}}
  %3 = contract %q, %2 {{spec="bmk,bnk->bmn"}}
  output "y" %3
  {}
  update %cache <- %1
}})",
                                     query, rows, positions, more),
                         "append.lathe");
}

void check_unchanged(const ir::Graph& graph) { CHECK(ir::print(read_before_append(graph, 8)) == ir::print(graph)); }

}  // namespace

TEST_CASE("read-before-append: matmuls read the cache, and the row where it is appended") {
  const ir::Graph graph = graph_of("1", "i64[2, 1]", 1), changed = read_before_append(graph, 8);
  const std::string text = ir::print(changed);
  INFO(text);
  CHECK_THAT(text, Contains("iota") && Contains("eq") && Contains("where") && Contains("update_rows"));
  for (const std::int64_t position : {0, 4, 8}) {
    Tensors arguments;
    const auto pattern = [](std::vector<std::int64_t> sizes) {
      HostTensor value(f32, std::move(sizes));
      for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>((i * 7) % 11) - 5);
      return value;
    };
    arguments.set("q", pattern({2, 1, 8}));
    arguments.set("row", pattern({2, 1, 8}));
    arguments.set("cache", pattern({2, 9, 8}));
    arguments.set("at", HostTensor::from_ints({2, 1}, {position, 8 - position}));
    const Tensors found = ir::interpret(changed, arguments), expected = ir::interpret(graph, arguments);
    for (const auto& [name, value] : expected) CHECK(found.at(name).same_bits(value));
  }
  CHECK_THAT(ir::print(read_before_append(graph_of("1", "i64[1]", 1), 8)), Contains("where"));
}

TEST_CASE("read-before-append: not if a kernel of its own computes a row") {
  check_unchanged(ir::parse_graph(R"(graph @g(input %q: f32[1, 8], input %row: f32[1, 8], input %at: i64[1],
    state %cache: f32[9, 8]) {
  %1 = exp %row
  %2 = update_rows %cache, %at, %1 {dim=0}
  %3 = contract %q, %2 {spec="mk,nk->mn"}
  output "y" %3
  update %cache <- %2
})"));
}

TEST_CASE("read-before-append: not for several rows, many rows of the matmul, or other readers") {
  check_unchanged(graph_of("1", "i64[2, 2]", 2));
  check_unchanged(graph_of("9", "i64[2, 1]", 1));
  check_unchanged(graph_of("1", "i64[2, 1]", 1, "output \"cache\" %1"));
  check_unchanged(graph_of("1", "i64[2, 1]", 1, "%4 = exp %1\n  output \"z\" %4"));
}
