#include "passes/fusion/prepare/copied_operands.h"

#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "ir/tensor/text/parser.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"

using namespace lathe;

namespace {

/// Whether the matmuls that read the value named "o", computed from parameter %w: f32[256, 64], recompute it.
/// `products` read it as %1.
bool inlined(std::string_view made, std::string_view products, bool copied = true) {
  const ir::Graph graph = prepare_for_fusion(ir::parse_graph(
      fmt::format(
          R"(graph @g(input %x: bf16[n, 64], input %one: bf16[8, 64], input %f: f32[n, 64], input %h: bf16[n, 256], parameter %w: f32[256, 64]) {{
  %1 = {} name("o")
  {}
}})",
          made, products),
      "copied.lathe"));
  const FusionPlan plan = plan_fusion(graph, {.copied_operands = copied ? 128 : 0});
  for (std::int32_t i = 0; i < graph.size(); ++i)
    if (graph[ir::ValueId{i}].name == "o") return plan.is_inlined({i});
  FAIL("no value named o");
  return false;
}

constexpr std::string_view narrow = "cast %w {dtype=bf16}", forward = R"(%2 = contract %x, %1 {spec="ac,bc->ab"}
  output "y" %2)";

}  // namespace

TEST_CASE("copied_operands: a parameter that is rounded for matmuls is stored if the matmuls copy operands") {
  CHECK_FALSE(inlined(narrow, forward));
  CHECK(inlined(narrow, forward, false));
  // Also through a view.
  CHECK_FALSE(inlined(narrow, R"(%2 = transpose %1 {dim0=0, dim1=1}
  %3 = contract %x, %2 {spec="ac,cb->ab"}
  output "y" %3)"));
  // A value computed for each of several matmuls, too.
  CHECK_FALSE(inlined("cast %f {dtype=bf16}", R"(%2 = contract %1, %h {spec="ca,cb->ab"}
  %3 = contract %h, %1 {spec="ca,cb->ab"}
  output "y" %2
  output "z" %3)"));
}

TEST_CASE("copied_operands: with few rows or other dtypes the operand is computed in the matmul") {
  CHECK(inlined(narrow, R"(%2 = contract %one, %1 {spec="ac,bc->ab"}
  output "y" %2)"));
  const std::string_view wide = R"(%2 = contract %f, %1 {spec="ac,bc->ab"}
  output "y" %2)";
  CHECK(inlined("mul %w, %w", wide) == inlined("mul %w, %w", wide, false));
}
