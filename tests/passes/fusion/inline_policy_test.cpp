#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "ir/tensor/text/parser.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"

using namespace lathe;

namespace {

/// Whether the value named "left" is inlined into its users. The graph has %x: [n, 8], %h: bf16[n, 8], %s: [8], %w:
/// [4, 8] and %v: [8, 8].
bool inlined_where(std::string_view body) {
  const ir::Graph graph = prepare_for_fusion(ir::parse_graph(
      fmt::format(
          R"(graph @g(input %x: f32[n, 8], input %h: bf16[n, 8], input %s: f32[8], parameter %w: f32[4, 8], parameter %v: f32[8, 8]) {{
  {}
}})",
          body),
      "inline.lathe"));
  const FusionPlan plan = plan_fusion(graph);
  for (std::int32_t i = 0; i < graph.size(); ++i)
    if (graph[ir::ValueId{i}].name == "left") return plan.is_inlined({i});
  FAIL("no value named left");
  return false;
}

/// Whether the value named "left" is inlined into the matmul that reads it. `left` computes it, as %2; `more` is the
/// rest of the graph.
bool inlined(std::string_view left, std::string_view more = "") {
  return inlined_where(fmt::format(R"({}
  %9 = contract %2, %w {{spec="ac,bc->ab"}}
  output "y" %9
  {})",
                                   left, more));
}

}  // namespace

TEST_CASE("a matmul operand is stored instead of a value that only it reads", "[fusion]") {
  CHECK_FALSE(inlined(R"(%1 = exp %x
  %2 = mul %1, %s name("left"))"));
}

TEST_CASE("a matmul operand is stored if its own operands then stay in registers", "[fusion]") {
  const std::string product = R"(%1 = exp %x
  %2 = mul %1, %s name("left"))";
  CHECK_FALSE(inlined(product, R"(%3 = add %1, %x
  output "e" %3)"));
  // After another matmul, like GELU, its gate and its slope: both run in that matmul's epilogue.
  const std::string behind = R"(%1 = contract %x, %v {spec="ac,bc->ab"}
  %3 = exp %1
  %2 = mul %1, %3 name("left"))";
  CHECK_FALSE(inlined(behind));
  CHECK_FALSE(inlined(behind, R"(%4 = add %1, %3
  output "slope" %4)"));
  CHECK(inlined(behind, R"(output "x" %1
  output "gate" %3)"));
  // Another user may wait for a matmul whose result is fused into the one that is read here.
  CHECK_FALSE(inlined(R"(%1 = contract %x, %v {spec="ac,bc->ab"}
  %3 = contract %1, %v {spec="ac,bc->ab"}
  %2 = mul %3, %s name("left"))",
                      R"(%4 = mul %3, %1
  output "both" %4)"));
}

TEST_CASE("a matmul operand is computed in the matmul if its operands are stored for other users", "[fusion]") {
  const std::string product = R"(%1 = exp %x
  %2 = mul %1, %s name("left"))";
  // Another matmul, a user that waits for one, and a row reduction read it from memory.
  CHECK(inlined(product, R"(%3 = contract %1, %w {spec="ac,bc->ab"}
  output "p" %3)"));
  CHECK(inlined(product, R"(%3 = contract %x, %v {spec="ac,bc->ab"}
  %4 = mul %1, %3
  output "p" %4)"));
  CHECK(inlined(R"(%1 = contract %x, %v {spec="ac,bc->ab"}
  %2 = mul %1, %s name("left"))",
                R"(%3 = mul %1, %1
  %4 = sum %3 {dims=[1]}
  output "p" %4)"));
}

TEST_CASE("a matmul operand is computed in the matmul if that saves a buffer", "[fusion]") {
  const std::string product = R"(%1 = exp %x
  %2 = mul %1, %s name("left"))";
  CHECK(inlined(product, R"(output "e" %1)"));
  CHECK(inlined(R"(%2 = mul %x, %s name("left"))"));
  CHECK(inlined(R"(%1 = exp %s
  %2 = mul %x, %1 name("left"))"));
  CHECK(inlined(R"(%1 = exp %h
  %2 = cast %1 {dtype=f32} name("left"))"));
}

TEST_CASE("an operand of a grouped matmul is computed in the matmul if it reads one buffer", "[fusion]") {
  const std::string offsets = R"(%8 = constant {dtype=i64, shape=[2], values=[0, 4]}
  )",
                    product = R"(
  %9 = grouped_matmul %2, %8, %v
  output "y" %9)";
  CHECK(inlined_where(offsets + R"(%2 = neg %x name("left"))" + product));
  CHECK_FALSE(inlined_where(offsets + R"(%2 = mul %x, %s name("left"))" + product));
  CHECK_FALSE(inlined_where(offsets + R"(%2 = exp %x name("left"))" + product));
}

TEST_CASE("a cheap operand of a concat or a pad is computed inside it", "[fusion]") {
  const std::string half = R"(%1 = slice %x {dim=1, start=0, stop=4}
  %2 = neg %1 name("left")
  %3 = concat %2, %1 {dim=1}
  output "joined" %3)";
  CHECK(inlined_where(half));
  CHECK(inlined_where(R"(%2 = neg %x name("left")
  %3 = pad %2 {dim=1, low=1, high=0}
  output "padded" %3)"));
  // Not expensive values, values with many operands, or values that have other users.
  CHECK_FALSE(inlined_where(R"(%2 = exp %x name("left")
  %3 = concat %2, %x {dim=1}
  output "joined" %3)"));
  CHECK_FALSE(inlined_where(R"(%2 = mul %x, %s name("left")
  %3 = concat %2, %x {dim=1}
  output "joined" %3)"));
  CHECK_FALSE(inlined_where(half + R"(
  %4 = exp %2
  output "more" %4)"));
}

TEST_CASE("a wider copy of a narrower float is computed by its users in any region", "[fusion]") {
  // %1 is stored for a matmul; one of the copy's users waits for another matmul.
  const auto graph = [](std::string_view reader) {
    return fmt::format(R"(%1 = contract %h, %h {{spec="ac,bc->ab"}}
  %2 = cast %1 {{dtype=f32}} name("left")
  %3 = contract %1, %h {{spec="ab,bc->ac"}}
  %4 = cast %3 {{dtype=f32}}
  %5 = contract %4, %4 {{spec="ac,bc->ab"}}
  {}
  output "y" %6)",
                       reader);
  };
  CHECK(inlined_where(graph("%6 = mul %2, %5")));
  CHECK(inlined_where(graph("%6 = exp %2\n  output \"z\" %5")));
  CHECK(inlined_where(graph("%6 = mul %2, %5\n  %7 = sum %2 {dims=[1]}\n  output \"sums\" %7")));
  CHECK_FALSE(inlined_where(graph("%6 = mul %2, %5\n  output \"copy\" %2")));
}

TEST_CASE("a cheap wider float computed from one narrower float is not stored: its users widen that", "[fusion]") {
  // %2, read by a matmul, a reduction and an element-wise output.
  const auto read = [](std::string_view left) {
    return fmt::format(R"({}
  %7 = contract %2, %w {{spec="ac,bc->ab"}}
  %8 = sum %2 {{dims=[1]}}
  %9 = sub %2, %x
  output "product" %7
  output "sums" %8
  output "points" %9)",
                       left);
  };
  const std::string copy = "%1 = cast %h {dtype=f32}\n  ";
  CHECK(inlined_where(read(R"(%2 = cast %h {dtype=f32} name("left"))")));
  CHECK(inlined_where(read(copy + R"(%2 = neg %1 name("left"))")));
  // It may have a smaller operand as well, also through views, and take several ops.
  CHECK(inlined_where(read(copy + R"(%2 = mul %1, %s name("left"))")));
  CHECK(inlined_where(read(copy + R"(%3 = mul %1, %s
  %2 = add %3, %s name("left"))")));
  // Not expensive values, values that take many ops, or values computed from two operands of this size or from one as
  // wide.
  CHECK_FALSE(inlined_where(read(copy + R"(%2 = exp %1 name("left"))")));
  CHECK_FALSE(inlined_where(read(copy + R"(%3 = mul %1, %s
  %4 = add %3, %s
  %5 = mul %4, %s
  %6 = add %5, %s
  %2 = mul %6, %s name("left"))")));
  CHECK_FALSE(inlined_where(read(copy + R"(%2 = mul %1, %x name("left"))")));
  CHECK_FALSE(inlined_where(read(copy + R"(%2 = mul %1, %1 name("left"))")));
  CHECK_FALSE(inlined_where(read(R"(%2 = neg %x name("left"))")));
  // Nor values of the same width, even if there is a wider value in between.
  CHECK_FALSE(inlined_where(R"(%1 = cast %h {dtype=f32}
  %3 = mul %1, %s
  %2 = cast %3 {dtype=bf16} name("left")
  %8 = exp %2
  %9 = neg %2
  output "y" %8
  output "z" %9)"));
}
