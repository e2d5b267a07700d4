#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"

/// Edge cases of fusion and lowering, each compared with the interpreter.
using namespace lathe;
using lathe::test::check;
using lathe::test::n_sizes;

// ------------------------------------------------------------------------------------------- arguments and results

TEST_CASE("scalars: arguments, results and reductions of rank 0") {
  check(R"(graph @g(input %x: f64[], input %y: f64[], input %i: i64[]) {
  %1 = add %x, %y
  %2 = exp %1
  %3 = sum %2 {dims=[]}
  %4 = contract %x, %y {spec=",->"}
  %5 = mul %i, %i
  output "a" %2
  output "b" %3
  output "c" %4
  output "i" %5
})");
}

TEST_CASE("results that are arguments, constants, views, and one value twice") {
  check(R"(graph @g(input %x: f64[n, 3], parameter %p: f64[3]) {
  %1 = constant {dtype=f64, shape=[2, 2], values=[1.0, 2.0, 3.0, 4.0]}
  %2 = transpose %1 {dim0=0, dim1=1}
  %3 = transpose %x {dim0=0, dim1=1}
  %4 = expand %p {shape=[n, 3]}
  %5 = exp %x
  %6 = constant {dtype=f64, shape=[4], values=[7.0]}
  output "x" %x
  output "x2" %x
  output "p" %p
  output "constant" %1
  output "transposed" %2
  output "view" %3
  output "expanded" %4
  output "once" %5
  output "twice" %5
  output "splat" %6
})",
        {.sizes = n_sizes});
}

TEST_CASE("a parameter that is read, updated and also an output") {
  check(R"(graph @g(parameter %p: f64[n, 3], input %x: f64[n, 3]) {
  %1 = add %p, %x
  %2 = mul %p, %1
  output "before" %p
  output "product" %2
  output "after" %1
  update %p <- %1
})",
        {.sizes = n_sizes});
}

TEST_CASE("states that swap their values") {
  check(R"(graph @g(state %a: f64[n], state %b: f64[n], state %c: f64[n], state %d: f64[n]) {
  %1 = add %c, %d
  %2 = mul %d, %c
  update %a <- %b
  update %b <- %a
  update %c <- %1
  update %d <- %2
})",
        {.sizes = n_sizes});
}

TEST_CASE("one value updates two states and is an output") {
  check(R"(graph @g(state %a: f64[n], state %b: f64[n]) {
  %1 = add %a, %b
  output "y" %1
  update %a <- %1
  update %b <- %1
})",
        {.sizes = n_sizes});
}

// ------------------------------------------------------------------------------------------------ updates in place

TEST_CASE("updates that read the old state at other positions") {
  check(R"(graph @g(state %a: f64[4, 4], state %b: f64[4, 4], state %c: f64[9], state %s: f64[3, 20]) {
  %1 = transpose %a {dim0=0, dim1=1}
  %2 = neg %1
  %3 = contract %b, %b {spec="ik,kj->ij"}
  %4 = slice %c {dim=0, start=1, stop=9}
  %5 = slice %c {dim=0, start=0, stop=1}
  %6 = concat %4, %5 {dim=0}
  %7 = softmax %s {dim=1}
  update %a <- %2
  update %b <- %3
  update %c <- %6
  update %s <- %7
})");
}

TEST_CASE("updates after a matmul: the epilogue reads the state that it writes") {
  check(R"(graph @g(parameter %w: f64[k, 6], input %x: f64[n, k], input %y: f64[n, 6], parameter %v: f64[k, 6]) {
  %1 = contract %x, %y {spec="nk,nj->kj"}
  %2 = constant {dtype=f64, shape=[], values=[0.1]}
  %3 = mul %1, %2
  %4 = sub %w, %3
  %5 = contract %x, %v {spec="nk,kj->nj"}
  %6 = sub %v, %3
  output "y" %5
  update %w <- %4
  update %v <- %6
})",
        {.sizes = {{{"n", 5}, {"k", 4}}, {{"n", 0}, {"k", 3}}, {{"n", 40}, {"k", 33}}}});
}

TEST_CASE("a softmax written to a state whose old value has other users") {
  check(R"(graph @g(state %s: f64[n, 20], input %x: f64[n, 20]) {
  %1 = softmax %x {dim=1}
  %2 = exp %s
  %3 = sum %2 {dims=[0]}
  %4 = mul %1, %2
  output "e" %3
  output "m" %4
  update %s <- %1
})",
        {.sizes = n_sizes});
}

// ------------------------------------------------------------------------------------------------- concats and lanes

TEST_CASE("concat and pad along the lanes, and their users") {
  check(R"(graph @g(input %a: f64[n, 3], input %b: f64[n, 18], input %c: f64[n, m]) {
  %1 = concat %a, %b, %c {dim=1}
  %2 = pad %1 {dim=1, low=2, high=m}
  %3 = sum %2 {dims=[1]}
  %4 = softmax %1 {dim=1}
  %5 = concat %1, %1 {dim=0}
  %6 = sum %5 {dims=[0]}
  %7 = slice %2 {dim=1, start=1, stop=24, step=3}
  output "concat" %1
  output "pad" %2
  output "sum" %3
  output "softmax" %4
  output "columns" %6
  output "slice" %7
})",
        {.sizes = {{{"n", 3}, {"m", 5}}, {{"n", 1}, {"m", 1}}, {{"n", 0}, {"m", 1}}, {{"n", 2}, {"m", 0}}}});
}

TEST_CASE("gathers in one part of a concat or inside a pad only read for their part") {
  check(R"(graph @g(input %t: f64[v, 3], input %i: i64[n], input %x: f64[m, 3]) {
  %1 = gather %t, %i {dim=0}
  %2 = concat %x, %1 {dim=0}
  %3 = pad %1 {dim=0, low=2, high=1}
  %4 = concat %1, %1 {dim=1}
  %5 = sum %2 {dims=[0]}
  output "y" %2
  output "padded" %3
  output "wide" %4
  output "columns" %5
})",
        {.sizes = {{{"v", 3}, {"n", 4}, {"m", 2}},
                   {{"v", 3}, {"n", 0}, {"m", 2}},
                   {{"v", 0}, {"n", 0}, {"m", 1}},
                   {{"v", 1}, {"n", 2}, {"m", 1}}}});
}

TEST_CASE("gathers along other dims, with several indices, from strided tables") {
  check(R"(graph @g(input %t: f64[4, 3, n], input %i: i64[2, 5], input %j: i32[n]) {
  %1 = gather %t, %i {dim=1}
  %2 = transpose %t {dim0=0, dim1=2}
  %3 = gather %2, %i {dim=1}
  %4 = gather %t, %j {dim=0}
  %5 = exp %3
  output "middle" %1
  output "transposed" %3
  output "rows" %4
  output "exp" %5
})",
        {.sizes = n_sizes});
}

TEST_CASE("scatter_add: repeated rows, no rows, no updates, other dims") {
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 5], input %v: f64[2, n], input %e: i64[n]) {
  %1 = scatter_add %i, %u {size=3, dim=0}
  %2 = scatter_add %i, %v {size=4, dim=1}
  %3 = exp %u
  %4 = transpose %3 {dim0=0, dim1=1}
  %5 = scatter_add %e, %4 {size=n+3, dim=1}
  output "rows" %1
  output "columns" %2
  output "transposed" %5
})",
        {.sizes = n_sizes});
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 5]) {
  %1 = scatter_add %i, %u {size=0, dim=0}
  output "y" %1
})",
        {.sizes = {{{"n", 0}}, {{"n", 2}}}});
}

// ------------------------------------------------------------------------------------------------------- reductions

TEST_CASE("reductions of integers and booleans, also over nothing") {
  check(R"(graph @g(input %b: bool[n, 20], input %i: i64[n, 20], input %j: i32[20, n], input %x: f64[3, n, 2]) {
  %b1 = cast %b {dtype=i32}
  %1 = max %b1 {dims=[1]}
  %2 = min %b1 {dims=[0]}
  %3 = sum %i {dims=[1]}
  %4 = max %i {dims=[0]}
  %5 = min %j {dims=[1]}
  %6 = sum %j {dims=[0, 1]}
  %7 = max %x {dims=[1]}
  %8 = min %x {dims=[0, 2]}
  %9 = sum %x {dims=[0, 1, 2], keepdim=true}
  output "any" %1
  output "all" %2
  output "sum" %3
  output "max" %4
  output "min" %5
  output "total" %6
  output "xmax" %7
  output "xmin" %8
  output "xsum" %9
})",
        {.sizes = n_sizes, .top = 9});
}

TEST_CASE("reductions over every subset of three dims") {
  for (const std::string dims : {"0", "1", "2", "0, 1", "0, 2", "1, 2", "0, 1, 2", ""})
    check("graph @g(input %x: f64[n, 3, m]) {\n  %1 = exp %x\n  %2 = sum %1 {dims=[" + dims +
              "]}\n  %3 = max %x {dims=[" + dims +
              "], keepdim=true}\n  %4 = sub %x, %3\n  output \"y\" %2\n  output \"z\" %4\n}",
          {.sizes = {{{"n", 2}, {"m", 17}}, {{"n", 1}, {"m", 1}}, {{"n", 0}, {"m", 3}}, {{"n", 20}, {"m", 0}}}});
}

TEST_CASE("long reductions and wide columns are split into several chunks") {
  check(R"(graph @g(input %x: f64[n, 3], input %y: f64[2, n]) {
  %1 = sum %x {dims=[0]}
  %2 = sum %y {dims=[1]}
  %3 = sum %y {dims=[0]}
  %4 = exp %x
  output "long" %1
  output "row" %2
  output "wide" %3
  output "flat" %4
})",
        {.sizes = {{{"n", 9001}}, {{"n", 256}}, {{"n", 257}}}, .interpret_kernels = false});
}

TEST_CASE("rows without columns are skipped, for any number of rows") {
  check(R"(graph @g(input %x: f64[n, 3, m], input %y: f64[m], input %i: i64[3], state %s: f64[n, 3, m]) {
  %1 = mul %x, %y
  %2 = softmax %1 {dim=-1}
  %3 = gather %x, %i {dim=1}
  %4 = scatter_add %i, %x {size=5, dim=1}
  %5 = transpose %x {dim0=0, dim1=1}
  %6 = contiguous %5
  %7 = mul %s, %y
  output "mul" %1
  output "gather" %3
  output "scatter" %4
  output "contiguous" %6
  update %s <- %7
})",
        {.sizes = {{{"n", std::int64_t{1} << 60}, {"m", 0}}, {{"n", 3}, {"m", 2}}}});
}
