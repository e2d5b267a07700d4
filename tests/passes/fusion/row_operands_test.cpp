#include "passes/fusion/few_rows/row_operands.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/fusion/text/print_regions.h"
#include "passes/machines/gpu_machine.h"

using namespace lathe;
using Catch::Contains;

namespace {

/// Returns the regions of a graph whose parameters are %w: f32[64, 64], %v: f32[64, 64] and %g: f32[64].
std::string regions(const std::string& arguments, const std::string& body, const RowOperandLimits& limits) {
  Machine machine = gpu_machine(gpu_info("sm_90a"));
  machine.fusion.row_operands = limits;
  Compilation now = begin_compilation(
      ir::parse_graph("graph @g(" + arguments +
                          ", parameter %w: f32[64, 64], parameter %v: f32[64, 64], parameter %g: f32[64]) {\n" +
                          body + "\n}",
                      "rows.lathe"),
      machine, {});
  run_until(now, "fuse");
  return print_regions(now.regions, now.graph);
}

std::size_t count_of_regions(const std::string& arguments, const std::string& body,
                             const RowOperandLimits& limits = {.rows = 8, .bytes = 4096, .columns = 64}) {
  const std::string text = regions(arguments, body, limits);
  INFO(text);
  std::size_t count = 0;
  for (auto at = text.find("region "); at != std::string::npos; at = text.find("region ", at + 1)) ++count;
  return count;
}

const std::string norm = R"(  %1 = rms_norm %x, %g
  %2 = linear %1, %w
  %3 = linear %1, %v
  output "y" %2
  output "z" %3)";

}  // namespace

TEST_CASE("row_operands: matmuls of few rows compute norms and softmaxes that only they read") {
  CHECK(count_of_regions("input %x: f32[2, 64]", norm) == 2);
  CHECK(count_of_regions("input %x: f32[1, 2, 64]", norm) == 2);
  CHECK(count_of_regions("input %s: f32[4, 1, t], input %k: f32[4, t, 16]", R"(  %1 = softmax %s {dim=-1}
  %2 = matmul %1, %k
  output "y" %2)") == 1);
}

TEST_CASE("row_operands: a value that another kernel can compute as its epilogue stays there") {
  const std::string text = regions("input %x: f32[1, 64]", R"(  %1 = linear %x, %w
  %2 = linear %x, %v
  %3 = silu %1
  %4 = mul %3, %2
  %5 = linear %4, %w
  output "y" %5)",
                                   {.rows = 8, .bytes = 4096, .columns = 64});
  CHECK_THAT(text, Contains("region 2 product") && !Contains("region 3"));
  CHECK_THAT(text, Contains("epilogue"));
  // One product alone has all of it in its epilogue.
  CHECK(count_of_regions("input %x: f32[1, 64]", R"(  %1 = linear %x, %w
  %2 = gelu %1
  %3 = linear %2, %v
  output "y" %3)") == 2);
  CHECK(count_of_regions("input %x: f32[1, 64], input %r: f32[1, 64]", R"(  %1 = linear %x, %w
  %2 = add %1, %r
  %3 = rms_norm %2, %g
  %4 = linear %3, %v
  output "y" %4)") == 2);
}

TEST_CASE("row_operands: not for many rows, long rows, other readers, other dims, or without the option") {
  CHECK(count_of_regions("input %x: f32[2, 64]", norm, {}) == 3);
  CHECK(count_of_regions("input %x: f32[9, 64]", norm) == 3);
  CHECK(count_of_regions("input %x: f32[n, 64]", norm) == 3);
  CHECK(count_of_regions("input %x: f32[2, 64]", norm, {.rows = 8, .bytes = 256, .columns = 64}) == 3);
  CHECK(count_of_regions("input %x: f32[2, 64]", norm + "\n  output \"n\" %1") == 3);
  CHECK(count_of_regions("input %x: f32[2, 64]", norm + "\n  %4 = sum %1 {dims=[0]}\n  output \"n\" %4") == 4);
  // The matmul does not sum over the dim that the softmax folds.
  CHECK(count_of_regions("input %x: f32[64, 8]", R"(  %1 = softmax %x {dim=1}
  %2 = contract %1, %w {spec="ab,ac->bc"}
  output "y" %2)") == 2);
  // A length that is bound late, for more columns than the limit.
  CHECK(count_of_regions("input %s: f32[1, t], input %k: f32[t, 128]", R"(  %1 = softmax %s {dim=-1}
  %2 = matmul %1, %k
  output "y" %2)") == 2);
}

TEST_CASE("operand_of_few_rows: the operand that does not own the last dim of the result") {
  const ir::Graph graph =
      ir::parse_graph(R"(graph @g(input %x: f32[2, 64], input %w: f32[30, 64], input %i: i32[2, 64],
    input %j: i32[30, 64]) {
  %1 = contract %x, %w {spec="ac,bc->ab"}
  %2 = contract %w, %x {spec="bc,ac->ab"}
  %3 = contract %x, %w {spec="ac,bc->ba"}
  %4 = contract %i, %j {spec="ac,bc->ab"}
  output "1" %1
  output "2" %2
  output "3" %3
  output "4" %4
})");
  std::vector<int> found;
  for (const ir::Output& output : graph.outputs) found.push_back(operand_of_few_rows(graph, graph[output.value], 8));
  CHECK(found == std::vector<int>{0, 1, -1, -1});
}
