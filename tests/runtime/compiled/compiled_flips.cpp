#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/lower.h"

/// Views in reverse order, whose strides are negative.
using namespace lathe;
using lathe::test::check;
using lathe::test::n_sizes;

TEST_CASE("flips: point-wise ops, reductions along and across, and outputs that are views") {
  check(R"(graph @g(input %x: f64[n, 19], input %y: f64[n, 19]) {
  %1 = flip %x {dim=1}
  %2 = mul %1, %y
  %3 = flip %2 {dim=0}
  %4 = sum %1 {dims=[1]}
  %5 = max %3 {dims=[0]}
  %6 = softmax %1 {dim=1}
  output "view" %1
  output "product" %3
  output "rows" %4
  output "columns" %5
  output "softmax" %6
})",
        {.sizes = n_sizes});
}

TEST_CASE("flips: chains with slices, transposes, windows and reshapes") {
  check(R"(graph @g(input %x: f64[n, 12, 5]) {
  %1 = flip %x {dim=1}
  %2 = slice %1 {dim=1, start=1, stop=10, step=2}
  %3 = transpose %2 {dim0=1, dim1=2}
  %4 = flip %3 {dim=2}
  %5 = flip %1 {dim=2}
  %6 = view %5 {shape=[n, 60]}
  %7 = unfold %1 {dim=1, size=3}
  %8 = flip %7 {dim=3}
  %9 = sum %8 {dims=[1]}
  %10 = reshape %4 {shape=[n, 25]}
  output "sliced" %4
  output "merged" %6
  output "windows" %9
  output "copied" %10
})",
        {.sizes = n_sizes});
}

TEST_CASE("flips: operands of matmuls, tables, concats and scans") {
  check(R"(graph @g(input %x: f64[n, 40], input %w: f64[40, 24], input %i: i64[n]) {
  %1 = flip %x {dim=1}
  %2 = flip %w {dim=0}
  %3 = contract %1, %w {spec="nk,ko->no"}
  %4 = contract %x, %2 {spec="nk,ko->no"}
  %5 = flip %w {dim=1}
  %6 = contract %x, %5 {spec="nk,ko->no"}
  %7 = sub %i, %i
  %8 = gather %2, %7
  %9 = concat %1, %x {dim=1}
  %10 = cumsum %1 {dim=1}
  output "left" %3
  output "right" %4
  output "columns" %6
  output "rows" %8
  output "joined" %9
  output "running" %10
})",
        {.sizes = n_sizes});
}

TEST_CASE("flips: a state that is replaced by its own elements in reverse order is not written in place") {
  check(R"(graph @g(state %s: f64[33], input %x: f64[33]) {
  %1 = flip %s {dim=0}
  %2 = add %1, %x
  output "old" %1
  update %s <- %2
})");
}

TEST_CASE("flips: a matmul with a transposed kernel whose runs are short copies it once for all images") {
  const auto gradient = [](int channels) {
    return fmt::format(R"(graph @g(input %w: f32[64, {0}, 3, 3], input %y: f32[4, 64, 9, 9]) {{
  %1 = transpose %w {{dim0=0, dim1=1}}
  %2 = flip %1 {{dim=2}}
  %3 = flip %2 {{dim=3}}
  %4 = conv %y, %3 {{stride=[1, 1], low=[1, 1], high=[1, 1], dilation=[1, 1]}}
  output "x" %4
}})",
                       channels);
  };
  for (const int channels : {63, 64, 75}) check(gradient(channels), {.tolerance = 1e-4});
  const ir::Graph graph = ir::run_pipeline(test::parse(gradient(64)), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, *find_cpu_info("x86-64-v4"));
  REQUIRE(program.launches.size() == 2);
  const ProgramBuffer& copied = program.buffers.at(static_cast<std::size_t>(program.launches[0].buffers.back()));
  CHECK(copied.name == "copied left operand");
  CHECK(copied.elements.value() == 64 * 64 * 9);
}
