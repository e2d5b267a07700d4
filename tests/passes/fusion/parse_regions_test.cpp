#include "passes/fusion/text/parse_regions.h"

#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/fusion/text/print_regions.h"
#include "passes/lowering/lower.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "passes/program/text/print_program.h"
#include "tests/support/programs/plan_difference.h"

using namespace lathe;
using Catch::Matchers::Contains;

namespace {

/// A norm after a matmul, as written by hand: the graph has its own labels.
constexpr std::string_view by_hand = R"(region 0 product over [n, 8]
  product  stored  %p contract : f32[n, 8]
region 1 rows over [n, 8]: 1 trailing dim reduced
  reduction        %max max : f32[n, 1]
  elementwise      %e sub : f32[n, 8]
  elementwise  stored  %y mul : f32[n, 8]
computed by their readers: %two constant
graph @g(input %x: f32[n, 4], input %w: f32[8, 4]) {
  %p = contract %x, %w {spec="ab,cb->ac"}
  %max = max %p {dims=[1], keepdim=true}
  %e = sub %p, %max
  %two = constant {dtype=f32, shape=[], values=[2.0]}
  %y = mul %e, %two
  output "y" %y
}
)";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const auto at = result.find(from);
  REQUIRE(at != std::string::npos);
  return result.replace(at, from.size(), to);
}

/// Checks the message of the ParseError, with its line and column.
void check_rejected(const std::string& text, const std::string& message) {
  try {
    parse_fused_graph(text, "f");
  } catch (const ParseError& error) {
    CHECK_THAT(error.what(), Contains(message));
    return;
  }
  FAIL("not rejected, expected: " << message);
}

void check_round_trip(std::string_view graph, const Machine& machine) {
  Compilation now = begin_compilation(ir::parse_graph(graph), machine);
  run_until(now, "kernels");
  const std::string text = print_fused_graph(now.regions, now.graph);
  CAPTURE(text);
  const FusedGraph parsed = parse_fused_graph(text);
  CHECK(print_fused_graph(parsed.regions, parsed.graph) == text);
  CHECK(test::plan_difference(parsed.regions, now.regions).empty());
  KernelPool pool;
  const Program program = make_kernels(parsed.graph, parsed.regions, now.machine, {}, pool);
  CHECK(print_program(program) == print_program(now.program));
}

}  // namespace

TEST_CASE("parse_fused_graph: the text of every form of region parses to an equal plan", "[fusion]") {
  for (const std::string_view text : {
           // An attention with a mask and its gradients by reduction, a product with an epilogue, and sums of both
           // kinds.
           std::string_view(
               R"(graph @g(input %q: f32[S, 4], input %k: f32[S, 4], input %v: f32[S, 4], input %w: f32[4, 4]) {
  %s = contract %q, %k {spec="ad,bd->ab"} loc("a.cpp":1)
  %p = softmax %s {dim=-1} loc("a.cpp":2)
  %o = contract %p, %v {spec="ab,bd->ad"} loc("a.cpp":3)
  %l = linear %o, %w loc("odd\nname.cpp":4)
  %r = relu %l
  %m = sum %r {dims=[1]}
  %c = sum %r {dims=[0]}
  output "r" %r
  output "m" %m
  output "c" %c
})"),
           // Regions with kernels of their own, a table of constants, and states that are updated.
           std::string_view(
               R"(graph @g(input %x: f32[n, 8], input %i: i64[n], parameter %w: f32[16, 8], state %t: f32[n, 8]) {
  %1 = gather %w, %i {dim=0}
  %2 = add %1, %x
  %3 = argsort %2 {dim=1}
  %4 = cumsum %2 {dim=1}
  %5 = scatter_add %i, %2 {size=16}
  %6 = add %5, %w
  %7 = mul %t, %4
  %8 = contract %2, %2 {spec="ka,kb->ab"}
  %9 = cholesky %8
  update %w <- %6
  update %t <- %7
  output "order" %3
  output "factor" %9
})"),
       })
    for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))})
      check_round_trip(text, machine);
}

TEST_CASE("parse_fused_graph: a plan written by hand is lowered", "[fusion]") {
  const FusedGraph parsed = parse_fused_graph(by_hand);
  REQUIRE(parsed.regions.regions.size() == 2);
  CHECK(parsed.regions.regions[1].rows().inner == 1);
  CHECK(parsed.regions.regions[1].members.size() == 3);
  CHECK(print_regions(parsed.regions, parsed.graph) ==
        "region 0 product over [n, 8]\n"
        "  product         stored  %2 contract : f32[n, 8]                           // <text>:9\n"
        "region 1 rows over [n, 8]: 1 trailing dim reduced\n"
        "  reduction               %3 max : f32[n, 1]                                // <text>:10\n"
        "  elementwise             %4 sub : f32[n, 8]                                // <text>:11\n"
        "  elementwise     stored  %6 mul : f32[n, 8]                                // <text>:13\n"
        "computed by their readers: %5 constant\n");
  KernelPool pool;
  const Program program = make_kernels(parsed.graph, parsed.regions, cpu_machine(unnamed_cpu()), {}, pool);
  CHECK(program.regions == 2);
  CHECK(program.launches.back().info.role == KernelRole::row_reduction);
}

TEST_CASE("parse_fused_graph: errors name the position and the expectation", "[fusion]") {
  const auto rejected = [](std::string_view from, std::string_view to, const std::string& message) {
    check_rejected(replaced(by_hand, from, to), message);
  };
  rejected("region 1", "region 2", "f:3:8: this is region 1");
  rejected("rows over", "row over", "f:3:10: there is no kind of region row");
  rejected(": 1 trailing", ": one trailing", "f:3:28: expected an integer, found 'one'");
  rejected("1 trailing", "3 trailing", "f:3:1: this region reduces more dims than its domain has");
  rejected("%max max", "%maximum max", "f:4:20: the graph has no value %maximum");
  rejected("%max max", "%max sum", "f:4:25: %max is a max in the graph, not a sum");
  rejected("%max max : f32[n, 1]", "%max max : f32[n, 2]", "f:4:31: %max is f32[n, 1] in the graph");
  rejected("reduction        %max", "elementwise      %max", "f:4:3: the role of %3 max here is reduction");
  rejected("%e sub : f32[n, 8]", "%e sub : f32[n, 8] dims [0, 2]", "f:5:20: the domain [n, 8] has no dim 2");
  rejected("%e sub : f32[n, 8]", "%e sub : f32[n, 8] dims [0]", "f:5:20: 1 dims of the domain are given");
  rejected("%e sub : f32[n, 8]", "%p contract : f32[n, 8]", "f:5:20: %p is in region 0 already");
  rejected("%e sub : f32[n, 8]", "%two constant : f32[]", "f:5:20: %two cannot be in a region");
  rejected("  elementwise      %e sub : f32[n, 8]\n", "",
           "%4 sub is in no region and is not computed by its readers");
  rejected("region 0 product over [n, 8]\n  product  stored", "region 0 rows over [n, 8]\n  product  stored",
           "f:2:20: a contract is not the first member of a rows region");
  rejected("graph @g", "gaph @g", "f:8:1: expected 'graph', found 'gaph'");
  rejected("output \"y\" %y\n}", "output \"y\" %y\n} x", "f:15:3: expected the end of the text");
  check_rejected("region 0 rows over [n]\n", "f:2:1: expected a member of the region, found the end of the text");
  check_rejected("region 0 product over [n]: 1 trailing dim reduced\n", "f:1:28: expected a member of the region");
}

TEST_CASE("parse_fused_graph: a region cannot read a value of a later one", "[fusion]") {
  check_rejected(R"(region 0 rows over [n]
  elementwise  stored  %2 exp : f32[n]
region 1 rows over [n]
  elementwise  stored  %1 neg : f32[n]
graph @g(input %x: f32[n]) {
  %1 = neg %x
  %2 = exp %1
  output "y" %2
})",
                 "f:1:1: region 0 reads %1 neg of region 1, which runs later");
}
