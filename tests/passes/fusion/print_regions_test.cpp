#include "passes/fusion/text/print_regions.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"

using namespace lathe;

namespace {

std::string regions_of(std::string_view text) {
  const Machine machine = cpu_machine(unnamed_cpu());
  const Lowered lowered =
      compile_graph(ir::parse_graph(text), machine, {.lower = {.attention = AttentionFusion::required}});
  return print_regions(lowered.regions, lowered.graph);
}

}  // namespace

TEST_CASE("print_regions: prints the role of each node in its region", "[fusion]") {
  CHECK(regions_of(R"(graph @g(input %q: f32[S, 4], input %k: f32[S, 4], input %v: f32[S, 4], input %w: f32[4, 4]) {
  %s = contract %q, %k {spec="ad,bd->ab"} loc("a.cpp":1)
  %p = softmax %s {dim=-1} loc("a.cpp":2)
  %o = contract %p, %v {spec="ab,bd->ad"} loc("a.cpp":3)
  %l = linear %o, %w loc("a.cpp":4)
  %r = relu %l loc("a.cpp":5)
  %m = sum %r {dims=[1]} loc("a.cpp":6)
  output "r" %r
  output "m" %m
})") == "region 0 attention over [S, S]: rows along dim 0\n"
        "  scores                  %4 contract : f32[S, S]                           // a.cpp:1\n"
        "  reduction               %5 max : f32[S, 1]                                // a.cpp:2\n"
        "  elementwise             %6 sub : f32[S, S]                                // a.cpp:2\n"
        "  elementwise             %7 exp : f32[S, S]                                // a.cpp:2\n"
        "  reduction               %8 sum : f32[S, 1]                                // a.cpp:2\n"
        "  elementwise             %9 div : f32[S, S]                                // a.cpp:2\n"
        "  output product  stored  %10 contract : f32[S, 4]                          // a.cpp:3\n"
        "region 1 product over [S, 4]\n"
        "  product         stored  %11 contract : f32[S, 4]                          // a.cpp:4\n"
        "region 2 rows over [S, 4]: 1 trailing dim reduced\n"
        "  elementwise     stored  %13 maximum : f32[S, 4]                           // a.cpp:5\n"
        "  reduction       stored  %14 sum : f32[S]                                  // a.cpp:6\n"
        "computed by their readers: %12 constant\n");
}
