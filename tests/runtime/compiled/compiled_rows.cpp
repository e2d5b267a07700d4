#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/kernel_store.h"

/// Rows, sums over rows and scattered sums, compared with the interpreter at sizes that cross the ends of vectors and
/// chunks.
using namespace lathe;
using lathe::test::check_compiled;
using lathe::test::CheckOptions;
using lathe::test::parse;

namespace {

void check(std::string_view text, CheckOptions options = {}) {
  static lathe::test::KernelStore store;
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

TEST_CASE("chains of reductions, for full vectors and with a remainder") {
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

TEST_CASE("scattered sums: several blocks of columns, rows with many updates, 16-bit floats") {
  const std::vector<DimBindings> counts = {{{"n", 0}}, {{"n", 3}}, {{"n", 29}}};
  check(R"(graph @g(input %i: i64[n], input %a: f64[n, 300], input %y: f64[9, 300], input %h: bf16[2, n, 70]) {
  %1 = scatter_add %i, %a {size=9, dim=0}
  %2 = exp %y
  %3 = scatter_add %i, %a {size=9, dim=0}
  %4 = add %2, %3
  %5 = sum %4 {dims=[1]}
  %6 = cast %h {dtype=f64}
  %7 = scatter_add %i, %6 {size=5, dim=1}
  output "a" %1
  output "b" %4
  output "c" %5
  output "d" %7
})",
        {.sizes = counts, .top = 4});
}

TEST_CASE("one element of each row selected by index, in and out of range") {
  for (const char* m : {"3", "16", "67", "m"})
    check("graph @g(input %x: f64[n, " + std::string(m) + "], input %i: i64[n, 1]) {\n  %1 = iota {shape=[n, " +
              std::string(m) + R"(], dim=1, dtype=i64}
  %zero = constant {dtype=f64, shape=[], values=[0.0]}
  %least = constant {dtype=f64, shape=[], values=[-inf]}
  %2 = eq %1, %i
  %3 = exp %x
  %4 = where %2, %3, %least
  %5 = max %4 {dims=[1], keepdim=true}
  %6 = where %2, %x, %zero
  %7 = sum %6 {dims=[1], keepdim=true}
  %8 = sum %3 {dims=[1], keepdim=true}
  %9 = div %3, %8
  %10 = where %2, %9, %zero
  %11 = sum %10 {dims=[1]}
  output "most" %5
  output "plain" %7
  output "weights" %9
  output "weight" %11
})",
          {.sizes = {{{"n", 5}, {"m", 5}}, {{"n", 1}, {"m", 2}}}, .top = 6});
}

TEST_CASE("scattered updates are added in place to a result of a matmul, rows or columns") {
  const std::vector<DimBindings> counts = {{{"n", 0}, {"k", 2}}, {{"n", 17}, {"k", 5}}};
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 8], input %a: f64[k, 32], input %b: f64[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %2, %1
  %4 = mul %3, %3
  %5 = sum %4 {dims=[0, 1]}
  output "y" %4
  output "norm" %5
})",
        {.sizes = counts});
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 8], input %a: f64[k, 32], input %b: f64[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  %4 = exp %u
  %5 = scatter_add %i, %4 {size=32, dim=0}
  %6 = add %3, %5
  %7 = sum %6 {dims=[1]}
  %8 = mul %6, %6
  output "y" %8
  output "sums" %7
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
  %9 = sum %8 {dims=[0]}
  output "y" %9
})",
        {.sizes = counts});
}

TEST_CASE("scattered updates fused into point-wise users: with a matmul, in either order of its dims") {
  const std::vector<DimBindings> counts = {{{"n", 0}, {"k", 2}}, {{"n", 41}, {"k", 5}}};
  for (const std::string product : {R"(%a, %b {spec="kv,kd->vd"})", R"(%b, %a {spec="kd,kv->vd"})"})
    check(R"(graph @g(input %i: i64[n], input %u: f64[n, 19], input %a: f64[k, 37], input %b: f64[k, 19],
                       parameter %p: f64[37, 19]) {
  %1 = exp %u
  %2 = scatter_add %i, %1 {size=37, dim=0}
  %3 = contract )" +
              product + R"(
  %4 = add %3, %2
  %5 = sub %p, %4
  update %p <- %5
})",
          {.sizes = counts, .top = 36});
}

TEST_CASE("scattered updates fused into point-wise users: other dims, dtypes, strides and indices") {
  const std::vector<DimBindings> counts = {{{"n", 0}}, {{"n", 1}}, {{"n", 23}}};
  check(R"(graph @g(input %i: i32[2, n], input %u: f64[3, 2, n, 5, 3], input %v: f64[n, 40], input %j: i64[n],
                     input %w: f64[33], input %z: i64[]) {
  %1 = scatter_add %i, %u {size=17, dim=1}
  %2 = exp %1
  %3 = slice %v {dim=1, start=3, stop=36}
  %4 = scatter_add %j, %3 {size=20, dim=0}
  %5 = mul %4, %4
  %6 = expand %w {shape=[n, 33]}
  %7 = scatter_add %j, %6 {size=20, dim=0}
  %8 = add %7, %5
  %9 = scatter_add %z, %w {size=20, dim=0}
  %10 = neg %9
  output "a" %2
  output "b" %8
  output "c" %10
})",
        {.sizes = counts, .top = 15});
  check(R"(graph @g(input %i: i64[n], input %u: bf16[n, 24], input %k: i32[n, 24], parameter %p: bf16[18, 24]) {
  %1 = scatter_add %i, %u {size=18, dim=0}
  %2 = sub %p, %1
  %3 = scatter_add %i, %k {size=18, dim=0}
  %4 = mul %3, %3
  update %p <- %2
  output "k" %4
})",
        {.sizes = counts, .tolerance = 2e-2, .top = 17});
  check(R"(graph @g(input %i: i64[n], input %u: f64[m, n, 12]) {
  %1 = scatter_add %i, %u {size=17, dim=1}
  %2 = neg %1
  output "y" %2
})",
        {.sizes = {{{"n", 9}, {"m", 2}}, {{"n", 9}, {"m", 0}}, {{"n", 0}, {"m", 2}}}, .top = 40});
}

TEST_CASE("two sums over the same rows of one pass that only lowering recognizes as equal") {
  check(R"(graph @g(input %x: bf16[n, 3], input %y: bf16[n, 5, 4]) {
  %1 = log_softmax %x {dim=0}
  %2 = einsum %1, %y {equation="ab,cde->bde"}
  %3 = sum %2 {dims=[0, 1, 2]}
  %4 = sum %1 {dims=[0, 1]}
  output "products" %3
  output "sum" %4
})",
        {.sizes = row_counts, .tolerance = 0.03});
}
