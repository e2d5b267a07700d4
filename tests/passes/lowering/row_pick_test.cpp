#include <catch2/catch.hpp>

#include <algorithm>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

/// Reductions over a row that are recognized as selecting one of its elements.
using namespace lathe;

namespace {

/// Whether no kernel compares column numbers in a loop over the row.
bool picks(const std::string& condition, const std::string& rest) {
  const std::string text =
      "graph @g(input %x: f32[n, 64], input %i: i64[n, 1], input %j: i64[n, 64]) {\n"
      "  %zero = constant {dtype=f32, shape=[], values=[0.0]}\n"
      "  %one = constant {dtype=f32, shape=[], values=[1.0]}\n"
      "  %least = constant {dtype=f32, shape=[], values=[-inf]}\n" +
      condition + rest + "  output \"y\" %y\n}";
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "picks.lathe"), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, unnamed_cpu());
  return std::none_of(program.kernels.begin(), program.kernels.end(), [](const kernel::Kernel& code) {
    return kernel::print(code).find("ramp ") != std::string::npos;
  });
}

const std::string at_column = "  %1 = iota {shape=[n, 64], dim=1, dtype=i64}\n  %2 = eq %1, %i\n";

}  // namespace

TEST_CASE("a sum or maximum of one selected element has no loop over the row", "[lowering]") {
  CHECK(picks(at_column, "  %3 = where %2, %x, %zero\n  %y = sum %3 {dims=[1]}\n"));
  CHECK(picks(at_column, "  %3 = exp %x\n  %4 = where %2, %3, %least\n  %y = max %4 {dims=[1]}\n"));
  CHECK(picks("  %1 = iota {shape=[n, 64], dim=1, dtype=i64}\n  %2 = eq %i, %1\n",
              "  %3 = where %2, %x, %zero\n  %y = sum %3 {dims=[1]}\n"));
}

TEST_CASE("reductions that read other elements too are not picks", "[lowering]") {
  CHECK_FALSE(picks(at_column, "  %3 = where %2, %x, %one\n  %y = sum %3 {dims=[1]}\n"));
  CHECK_FALSE(picks(at_column, "  %3 = where %2, %x, %zero\n  %y = max %3 {dims=[1]}\n"));
  CHECK_FALSE(picks(at_column, "  %3 = where %2, %zero, %x\n  %y = sum %3 {dims=[1]}\n"));
  CHECK_FALSE(picks("  %1 = iota {shape=[n, 64], dim=1, dtype=i64}\n  %2 = eq %1, %j\n",
                    "  %3 = where %2, %x, %zero\n  %y = sum %3 {dims=[1]}\n"));
  CHECK_FALSE(picks("  %1 = iota {shape=[n, 64], dim=1, dtype=i64}\n  %2 = le %1, %i\n",
                    "  %3 = where %2, %x, %zero\n  %y = sum %3 {dims=[1]}\n"));
}
