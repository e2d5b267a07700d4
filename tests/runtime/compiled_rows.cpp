#include <catch2/catch.hpp>

#include "tests/runtime/check_compiled.h"
#include "tests/support/memory_store.h"

/// Rows, sums over rows and scattered sums against the interpreter, at sizes that cross the ends of vectors and
/// chunks.
using namespace lathe;
using lathe::test::check_compiled;
using lathe::test::CheckOptions;
using lathe::test::parse;

namespace {

void check(std::string_view text, CheckOptions options = {}) {
  static lathe::test::MemoryStore store;
  options.store = &store;
  check_compiled(parse(text), options);
}

const std::vector<DimBindings> row_counts = {{{"n", 0}}, {{"n", 1}}, {{"n", 9}}, {{"n", 300}}};

}  // namespace

TEST_CASE("sums over the rows of a pass: one, several, of every kind") {
  check(R"(graph @g(input %x: f64[n, 67], input %dy: f64[n, 67], input %w: f64[67]) {
  %1 = mul %dy, %w
  %2 = mul %1, %x
  %3 = sum %2 {dims=[1], keepdim=true}
  %4 = sub %1, %3
  %5 = mul %dy, %x
  %6 = sum %5 {dims=[0]}
  %7 = sum %dy {dims=[0], keepdim=true}
  %8 = max %dy {dims=[0]}
  output "dx" %4
  output "dw" %6
  output "db" %7
  output "largest" %8
})",
        {.sizes = row_counts});
}

TEST_CASE("a sum over the rows of a pass that reads another such sum") {
  check(R"(graph @g(input %x: f64[n, 67]) {
  %1 = exp %x
  %2 = sum %1 {dims=[0]}
  %3 = sum %1 {dims=[1]}
  %4 = add %1, %2
  %5 = sum %4 {dims=[0]}
  output "a" %3
  output "b" %5
})",
        {.sizes = row_counts});
}

TEST_CASE("sums over the rows of whole tensors, without a pass to join") {
  check(R"(graph @g(input %x: f64[2, n, 5], input %y: f32[n, 130]) {
  %1 = sum %x {dims=[0, 1]}
  %2 = sum %y {dims=[0]}
  %3 = cast %2 {dtype=f64}
  output "a" %1
  output "b" %3
})",
        {.sizes = row_counts, .tolerance = 1e-5});
}

TEST_CASE("a sum over rows is the new value of a state that the rows read") {
  check(R"(graph @g(state %b: f64[20], input %x: f64[n, 20]) {
  %1 = mul %x, %b
  %2 = sum %1 {dims=[1], keepdim=true}
  %3 = sub %x, %2
  %4 = sum %1 {dims=[0]}
  output "y" %3
  update %b <- %4
})",
        {.sizes = row_counts});
}

TEST_CASE("reductions in several chains, whole and with a tail") {
  for (const char* m : {"3", "16", "32", "67", "130", "m"})
    check("graph @g(input %x: f64[n, " + std::string(m) + R"(]) {
  %1 = sum %x {dims=[1], keepdim=true}
  %2 = max %x {dims=[1], keepdim=true}
  %3 = sub %x, %1
  %4 = mul %3, %3
  %5 = sum %4 {dims=[1], keepdim=true}
  %6 = add %5, %2
  output "y" %6
})",
          {.sizes = {{{"n", 3}, {"m", 67}}, {{"n", 2}, {"m", 5}}}});
}

TEST_CASE("scattered sums: many rows, few columns, no columns, several blocks") {
  const std::vector<DimBindings> counts = {{{"n", 0}}, {{"n", 1}}, {{"n", 40}}};
  check(
      R"(graph @g(input %i: i64[n], input %a: f64[n, 70], input %b: f64[n, 3], input %c: f64[n], input %d: f64[2, n, 33]) {
  %1 = scatter_add %i, %a {size=300, dim=0}
  %2 = scatter_add %i, %b {size=4, dim=0}
  %3 = scatter_add %i, %c {size=50, dim=0}
  %4 = scatter_add %i, %d {size=11, dim=1}
  output "a" %1
  output "b" %2
  output "c" %3
  output "d" %4
})",
      {.sizes = counts});
}

TEST_CASE("scattered updates are added to what a product, rows or columns made there") {
  const std::vector<DimBindings> counts = {{{"n", 0}, {"k", 2}}, {{"n", 17}, {"k", 5}}};
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 8], input %a: f64[k, 32], input %b: f64[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %2, %1
  %4 = mul %3, %3
  output "y" %4
})",
        {.sizes = counts});
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 8], input %x: f64[k, 32, 8], input %y: f64[32, 8]) {
  %1 = sum %x {dims=[0]}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  %4 = exp %y
  %5 = scatter_add %i, %u {size=32, dim=0}
  %6 = neg %5
  %7 = add %6, %4
  %8 = mul %3, %7
  output "y" %8
})",
        {.sizes = counts});
}
