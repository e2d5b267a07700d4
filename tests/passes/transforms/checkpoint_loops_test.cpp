#include "passes/remat/checkpoint_loops.h"

#include <catch2/catch.hpp>

#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/remat/choose_segments.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

/// A forward loop over a square of the carry, and the loop of its gradient.
constexpr std::string_view squares = R"(graph @g(input %h: f64[3], input %x: f64[n*4, 3], input %d: f64[3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %h, %h
    %2 = add %1, %x
    %3 = contiguous %h
    output "saved" %3
    update %h <- %2
  }
  %1 = loop %h, %x {body=@step, trips=n*4, sequences=1}
  %2 = loop %h, %x {body=@step, trips=n*4, sequences=1, result=1}
  body @step.gradient(state %d: f64[3], input %h: f64[3]) {
    %1 = mul %d, %h
    %2 = add %1, %1
    output "dx" %1
    update %d <- %2
  }
  %3 = loop %d, %2 {body=@step.gradient, trips=n*4, sequences=1, reverse=true}
  %4 = loop %d, %2 {body=@step.gradient, trips=n*4, sequences=1, result=1, reverse=true}
  output "last" %1
  output "dh" %3
  output "dx" %4
})";

ir::Graph with_segments(const ir::Graph& graph, std::int64_t every) {
  std::vector<LoopSegments> chosen;
  for (const LoopPair& pair : find_loop_pairs(graph))
    if (pair.left_alone.empty()) chosen.push_back({pair, every});
  return checkpoint_loops(graph, chosen);
}

}  // namespace

TEST_CASE("checkpoint-loops: a forward loop keeps a carry per segment, and the gradient runs the segment again",
          "[loops]") {
  const ir::Graph graph = prepare_for_fusion(parse(squares));
  const ir::Graph after = with_segments(graph, 2);
  CHECK(text(after) == "");
  check_same_meaning(graph, after, random_arguments(graph, {{"n", 3}}), 0);
}
