#include <catch2/catch.hpp>

#include "tests/runtime/check_compiled.h"
#include "tests/support/memory_store.h"

/// Graphs that sit on the edges of fusion and lowering, each against the interpreter.
using namespace lathe;
using lathe::test::check_compiled;
using lathe::test::CheckOptions;
using lathe::test::parse;

namespace {

void check(std::string_view text, const CheckOptions& options = {}) {
  static lathe::test::MemoryStore store;
  CheckOptions with_store = options;
  with_store.store = &store;
  check_compiled(parse(text), with_store);
}

const std::vector<DimBindings> n_sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

}  // namespace

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
  output "turned" %2
  output "view" %3
  output "expanded" %4
  output "once" %5
  output "twice" %5
  output "splat" %6
})",
        {.sizes = n_sizes});
}

TEST_CASE("a parameter that is read, updated and also a result") {
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

TEST_CASE("states that take each other's values") {
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

TEST_CASE("one value goes to two states and a result") {
  check(R"(graph @g(state %a: f64[n], state %b: f64[n]) {
  %1 = add %a, %b
  output "y" %1
  update %a <- %1
  update %b <- %1
})",
        {.sizes = n_sizes});
}

// ------------------------------------------------------------------------------------------------ updates in place

TEST_CASE("updates that read the old state at other places") {
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

TEST_CASE("updates behind a product: the epilogue reads the state that it writes") {
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

TEST_CASE("a softmax written to a state whose old value others read") {
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

// --------------------------------------------------------------------------------------------------- joins and lanes

TEST_CASE("concat and pad along the lanes, and what reads them") {
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

TEST_CASE("gathers in one part of a concat or inside a pad look only where their part is") {
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

TEST_CASE("gathers along other dims, of several indices, of strided tables") {
  check(R"(graph @g(input %t: f64[4, 3, n], input %i: i64[2, 5], input %j: i32[n]) {
  %1 = gather %t, %i {dim=1}
  %2 = transpose %t {dim0=0, dim1=2}
  %3 = gather %2, %i {dim=1}
  %4 = gather %t, %j {dim=0}
  %5 = exp %3
  output "middle" %1
  output "turned" %3
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
  output "turned" %5
})",
        {.sizes = n_sizes});
  check(R"(graph @g(input %i: i64[n], input %u: f64[n, 5]) {
  %1 = scatter_add %i, %u {size=0, dim=0}
  output "y" %1
})",
        {.sizes = {{{"n", 0}}, {{"n", 2}}}});
}

// ------------------------------------------------------------------------------------------------------- reductions

TEST_CASE("reductions of integers and booleans, of nothing too") {
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

TEST_CASE("reductions over every choice of three dims") {
  for (const std::string dims : {"0", "1", "2", "0, 1", "0, 2", "1, 2", "0, 1, 2", ""})
    check("graph @g(input %x: f64[n, 3, m]) {\n  %1 = exp %x\n  %2 = sum %1 {dims=[" + dims +
              "]}\n  %3 = max %x {dims=[" + dims +
              "], keepdim=true}\n  %4 = sub %x, %3\n  output \"y\" %2\n  output \"z\" %4\n}",
          {.sizes = {{{"n", 2}, {"m", 17}}, {{"n", 1}, {"m", 1}}, {{"n", 0}, {"m", 3}}, {{"n", 20}, {"m", 0}}}});
}

TEST_CASE("long reductions and wide columns go over several chunks") {
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

// --------------------------------------------------------------------------------------------------------- products

TEST_CASE("products of nothing are zero, and their epilogue runs") {
  check(R"(graph @g(input %a: f64[b, m, k], input %w: f64[k, n], input %c: f64[n]) {
  %1 = contract %a, %w {spec="bmk,kn->bmn"}
  %2 = add %1, %c
  %3 = tanh %2
  output "y" %3
})",
        {.sizes = {{{"b", 2}, {"m", 3}, {"k", 0}, {"n", 5}},
                   {{"b", 0}, {"m", 3}, {"k", 2}, {"n", 5}},
                   {{"b", 2}, {"m", 0}, {"k", 2}, {"n", 5}},
                   {{"b", 2}, {"m", 3}, {"k", 2}, {"n", 0}},
                   {{"b", 2}, {"m", 3}, {"k", 7}, {"n", 5}}}});
  check(R"(graph @g(input %a: f64[3, 0], input %w: f64[0, 5], input %c: f64[5]) {
  %1 = contract %a, %w {spec="mk,kn->mn"}
  %2 = add %1, %c
  output "y" %2
})");
}

TEST_CASE("products of integers, which wrap") {
  check(R"(graph @g(input %a: i64[n, 3], input %b: i64[3, 4], input %c: i32[n, 3], input %d: i32[4, 3]) {
  %1 = contract %a, %b {spec="mk,kn->mn"}
  %2 = contract %c, %d {spec="mk,nk->mn"}
  output "i64" %1
  output "i32" %2
})",
        {.sizes = n_sizes, .top = 1LL << 40});
}

TEST_CASE("products of constants, expanded views, computed operands and one value twice") {
  check(R"(graph @g(input %a: f64[n, 4], input %g: f64[n, 2, 1, 4], input %q: f64[n, 2, 3, 4], input %s: f64[]) {
  %1 = constant {dtype=f64, shape=[2, 4], values=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}
  %2 = contract %a, %1 {spec="nk,jk->nj"}
  %3 = transpose %1 {dim0=0, dim1=1}
  %4 = contract %a, %3 {spec="nk,kj->nj"}
  %5 = expand %g {shape=[n, 2, 3, 4]}
  %6 = contract %q, %5 {spec="nhqd,nhkd->nhqk"}
  %7 = contract %a, %a {spec="ik,jk->ij"}
  %8 = expand %s {shape=[4, 5]}
  %9 = contract %a, %8 {spec="nk,kj->nj"}
  %10 = exp %a
  %11 = neg %10
  %12 = contract %11, %10 {spec="ik,jk->ij"}
  %13 = iota {shape=[4, 3], dim=0, dtype=f64}
  %14 = contract %a, %13 {spec="nk,kj->nj"}
  %15 = constant {dtype=f64, shape=[4, 3], values=[0.5]}
  %16 = contract %a, %15 {spec="nk,kj->nj"}
  output "constant" %2
  output "turned" %4
  output "heads" %6
  output "gram" %7
  output "splat" %9
  output "computed" %12
  output "iota" %14
  output "half" %16
})",
        {.sizes = n_sizes});
}

TEST_CASE("products in every order of labels") {
  for (const std::string spec :
       {"bik,bkj->bij", "bik,bjk->bij", "bki,bkj->ijb", "kib,jbk->jib", "ikb,bjk->bji", "ib,jb->bij", "ib,bj->jib",
        "bi,b->ib", "b,bi->bi", "ikl,lkj->ji", "kl,lk->", "i,j->ji"}) {
    const auto operand = [&](const std::string& labels) {
      std::string dims;
      for (const char label : labels) dims += (dims.empty() ? "" : ", ") + std::string(1, label);
      return "f64[" + dims + "]";
    };
    const std::size_t comma = spec.find(','), arrow = spec.find("->");
    check("graph @g(input %x: " + operand(spec.substr(0, comma)) + ", input %y: " +
              operand(spec.substr(comma + 1, arrow - comma - 1)) + ") {\n  %1 = contract %x, %y {spec=\"" + spec +
              "\"}\n  %2 = exp %1\n  output \"y\" %1\n  output \"z\" %2\n}",
          {.sizes = {{{"b", 2}, {"i", 3}, {"j", 5}, {"k", 4}, {"l", 2}},
                     {{"b", 1}, {"i", 1}, {"j", 1}, {"k", 1}, {"l", 1}},
                     {{"b", 3}, {"i", 17}, {"j", 9}, {"k", 8}, {"l", 3}}}});
  }
}

TEST_CASE("products whose result several others read") {
  check(R"(graph @g(input %a: f64[n, 4], input %w: f64[6, 4], input %b: f64[6]) {
  %1 = contract %a, %w {spec="nk,jk->nj"}
  %2 = add %1, %b
  %3 = softmax %2 {dim=1}
  %4 = tanh %2
  %5 = sum %4 {dims=[0]}
  %6 = transpose %2 {dim0=0, dim1=1}
  %7 = contract %3, %6 {spec="ij,jk->ik"}
  %8 = mul %7, %7
  output "y" %8
  output "columns" %5
})",
        {.sizes = n_sizes});
}

// ------------------------------------------------------------------------------------------------ views and
// constants

TEST_CASE("literal constants through views") {
  check(R"(graph @g(input %x: f64[n, 3, 2]) {
  %1 = constant {dtype=f64, shape=[3, 4], values=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]}
  %2 = slice %1 {dim=1, start=1, stop=4, step=2}
  %3 = add %x, %2
  %4 = reshape %1 {shape=[2, 6]}
  %5 = transpose %4 {dim0=0, dim1=1}
  %6 = sum %5 {dims=[0]}
  %7 = constant {dtype=i64, shape=[3], values=[2.0, 0.0, 1.0]}
  %8 = gather %x, %7 {dim=1}
  %a1 = slice %1 {dim=1, start=1, stop=4}
  %9 = diagonal %a1 {dim0=0, dim1=1}
  output "added" %3
  output "sum" %6
  output "shuffled" %8
  output "diagonal" %9
})",
        {.sizes = n_sizes});
}

TEST_CASE("views of views of reductions and products") {
  check(R"(graph @g(input %x: f64[n, 4, 6]) {
  %1 = permute %x {dims=[2, 0, 1]}
  %2 = reshape %1 {shape=[6, n*4]}
  %3 = exp %2
  %4 = reshape %3 {shape=[6, n, 4]}
  %5 = slice %4 {dim=0, start=1, stop=6, step=2}
  %6 = sum %5 {dims=[2], keepdim=true}
  %7 = expand %6 {shape=[3, n, 4]}
  %8 = mul %5, %7
  %9 = permute %8 {dims=[1, 2, 0]}
  %10 = sum %9 {dims=[2]}
  output "y" %9
  output "z" %10
})",
        {.sizes = n_sizes});
}

// --------------------------------------------------------------------------------------------------------------
// dtypes

TEST_CASE("casts between all dtypes") {
  for (const std::string from : {"f64", "f32", "bf16", "f16", "i64", "i32", "bool"})
    for (const std::string to : {"f64", "f32", "bf16", "f16", "i64", "i32", "bool"}) {
      if (from == to) continue;
      check("graph @g(input %x: " + from + "[n]) {\n  %1 = cast %x {dtype=" + to + "}\n  output \"y\" %1\n}",
            {.sizes = {{{"n", 21}}}, .tolerance = 0, .top = 1LL << 33, .interpret_kernels = false});
    }
}

TEST_CASE("narrow floats are rounded after every op, in memory or not") {
  for (const std::string dtype : {"bf16", "f16"})
    check("graph @g(input %x: " + dtype + "[n, 20], input %w: " + dtype + R"([20, 6], state %s: )" + dtype +
              R"([n, 20]) {
  %1 = mul %x, %x
  %2 = add %1, %x
  %3 = mul %2, %s
  %4 = sub %3, %x
  %5 = contract %4, %w {spec="nk,kj->nj"}
  %6 = max %4 {dims=[1]}
  output "y" %4
  output "max" %6
  output "product" %5
  update %s <- %3
})",
          {.sizes = n_sizes, .tolerance = 1e-2});
}

TEST_CASE("random draws are the same numbers in any shape of loop") {
  check(R"(graph @g(state %r: i64[2], input %x: f64[n, 3, 5]) {
  %1 = random_uniform %r {shape=[n, 3, 5], dtype=f64, stream=3}
  %2 = permute %1 {dims=[2, 0, 1]}
  %3 = sum %1 {dims=[1]}
  %4 = dropout %x, %r {p=0.5, stream=4}
  %5 = softmax %4 {dim=2}
  %6 = constant {dtype=i64, shape=[2], values=[0.0, 1.0]}
  %7 = add %r, %6
  output "draw" %1
  output "turned" %2
  output "sum" %3
  output "dropped" %5
  update %r <- %7
})",
        {.sizes = n_sizes, .top = 1LL << 50});
}
