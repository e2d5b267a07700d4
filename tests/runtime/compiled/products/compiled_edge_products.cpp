#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"

/// Edge cases of fusion and lowering, each compared with the interpreter.
using namespace lathe;
using lathe::test::check;
using lathe::test::n_sizes;

// --------------------------------------------------------------------------------------------------------- matmuls

TEST_CASE("matmuls with empty dims are zero, and their epilogue runs") {
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

TEST_CASE("integer matmuls wrap") {
  check(R"(graph @g(input %a: i64[n, 3], input %b: i64[3, 4], input %c: i32[n, 3], input %d: i32[4, 3]) {
  %1 = contract %a, %b {spec="mk,kn->mn"}
  %2 = contract %c, %d {spec="mk,nk->mn"}
  output "i64" %1
  output "i32" %2
})",
        {.sizes = n_sizes, .top = 1LL << 40});
}

TEST_CASE("matmuls of constants, expanded views, computed operands and one value twice") {
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
  output "transposed" %4
  output "heads" %6
  output "gram" %7
  output "splat" %9
  output "computed" %12
  output "iota" %14
  output "half" %16
})",
        {.sizes = n_sizes});
}

TEST_CASE("matmuls with every order of labels") {
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

TEST_CASE("matmuls whose result has several users") {
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

// -------------------------------------------------------------------------------------------- views and constants

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

// --------------------------------------------------------------------------------------------------------- dtypes

TEST_CASE("casts between all dtypes") {
  for (const std::string from : {"f64", "f32", "bf16", "f16", "i64", "i32", "bool"})
    for (const std::string to : {"f64", "f32", "bf16", "f16", "i64", "i32", "bool"}) {
      if (from == to) continue;
      check("graph @g(input %x: " + from + "[n]) {\n  %1 = cast %x {dtype=" + to + "}\n  output \"y\" %1\n}",
            {.sizes = {{{"n", 21}}}, .tolerance = 0, .top = 1LL << 33, .interpret_kernels = false});
    }
}

TEST_CASE("powers, exponentials and logarithms of whole numbers in f64 call existing functions") {
  check(R"(graph @g(input %i: i64[n], input %x: f64[n]) {
  %1 = cast %i {dtype=f64}
  %2 = constant {dtype=f64, shape=[], values=[2.0]}
  %3 = pow %2, %1
  %4 = constant {dtype=f64, shape=[], values=[10.0]}
  %5 = pow %4, %x
  %6 = pow %x, %2
  %7 = log %3
  %8 = exp %7
  output "two" %3
  output "ten" %5
  output "square" %6
  output "again" %8
})",
        {.sizes = n_sizes});
}

TEST_CASE("16-bit floats are rounded after every op, stored or not") {
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

TEST_CASE("random draws do not depend on the loop structure") {
  check(R"(graph @g(state %r: i64[2], input %x: f64[n, 3, 5]) {
  %1 = random_uniform %r {shape=[n, 3, 5], dtype=f64, stream=3}
  %2 = permute %1 {dims=[2, 0, 1]}
  %3 = sum %1 {dims=[1]}
  %4 = dropout %x, %r {p=0.5, stream=4}
  %5 = softmax %4 {dim=2}
  %6 = constant {dtype=i64, shape=[2], values=[0.0, 1.0]}
  %7 = add %r, %6
  output "draw" %1
  output "transposed" %2
  output "sum" %3
  output "dropped" %5
  update %r <- %7
})",
        {.sizes = n_sizes, .top = 1LL << 50});
}
