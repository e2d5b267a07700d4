#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/fusion/prepare/store_transposed.h"

using namespace lathe;

namespace {

ir::Graph stored(const std::string& text) { return store_transposed(ir::parse_graph(text)); }

std::ptrdiff_t copies(const ir::Graph& graph) {
  return std::ranges::count_if(graph.nodes, [](const ir::Node& node) { return node.op == &ir::ops::contiguous; });
}

/// At most 3 point-wise nodes that read a view of %x: f32[n, 6, 5], and a sum of it.
std::string with_readers(std::string_view view, int pointwise) {
  const std::string_view names[] = {"mul", "add", "sub"};
  std::string text = fmt::format("graph @g(input %x: f32[n, 6, 5], input %y: f32[n, 5, 6]) {{\n  %v = {}\n", view);
  for (int i = 0; i < pointwise; ++i)
    text += fmt::format("  %{0} = {1} %v, %y\n  output \"y{0}\" %{0}\n", i, names[i]);
  return text + "  %s = sum %v {dims=[2]}\n  output \"s\" %s\n}";
}

}  // namespace

TEST_CASE("store_transposed: many readers share one copy, in the order of the dims") {
  const ir::Graph graph = stored(with_readers("transpose %x {dim0=1, dim1=2}", 3));
  REQUIRE(copies(graph) == 1);
  for (const ir::Node& node : graph.nodes)
    if (node.op == &ir::ops::contiguous) CHECK(node.type.is_contiguous());
  const auto is_read = [&](const ir::Node& node) {
    return std::ranges::any_of(node.operands, [&](ir::ValueId id) { return graph[id].op == &ir::ops::contiguous; });
  };
  CHECK(std::ranges::count_if(graph.nodes, is_read) == 4);
}

TEST_CASE("store_transposed: few readers, and values whose last elements are adjacent, are unchanged") {
  CHECK(copies(stored(with_readers("transpose %x {dim0=1, dim1=2}", 2))) == 0);
  const std::string rows = R"(graph @g(input %x: f32[n, 6, 5], input %y: f32[6, n, 5]) {
  %v = transpose %x {dim0=0, dim1=1}
  %1 = mul %v, %y
  %2 = add %v, %y
  %3 = sub %v, %y
  %4 = div %v, %y
  output "a" %1
  output "b" %2
  output "c" %3
  output "d" %4
})";
  CHECK(copies(stored(rows)) == 0);
  const ir::Graph graph = ir::parse_graph(rows);
  CHECK(ir::print(store_transposed(ir::parse_graph(rows))) == ir::print(graph));
}

TEST_CASE("store_transposed: matmuls read the transposed value itself") {
  const ir::Graph graph = stored(R"(graph @g(input %x: f32[6, 5], input %y: f32[5, 6], input %w: f32[6, 6]) {
  %v = transpose %x {dim0=0, dim1=1}
  %1 = mul %v, %y
  %2 = add %v, %y
  %3 = sub %v, %y
  %4 = div %v, %y
  %5 = contract %v, %w {spec="ab,bc->ac"}
  output "a" %1
  output "b" %2
  output "c" %3
  output "d" %4
  output "e" %5
})");
  CHECK(copies(graph) == 1);
  for (const ir::Node& node : graph.nodes)
    if (node.op->as<ir::Contraction>()) CHECK(graph[node.operands[0]].op != &ir::ops::contiguous);
}
