#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/runtime/compiled/check_compiled.h"

/// Triangular factors and systems, products of elements, bits of integers, and log1p and expm1 near 0, compiled.
using namespace lathe;
using lathe::test::check;

namespace {

/// Factors x x^T + 4 for x [batch.., n, n], and a matrix that is not positive definite.
std::string factor(std::string_view dtype, std::string_view batch, std::string_view n, int rank) {
  return fmt::format(R"(graph @factor(input %x: {0}[{1}{2}, {2}]) {{
  %1 = transpose %x {{dim0={3}, dim1={4}}}
  %2 = matmul %x, %1
  %row = iota {{dtype=i64, dim=0, shape=[{2}, 1]}}
  %column = iota {{dtype=i64, dim=1, shape=[1, {2}]}}
  %5 = eq %row, %column
  %6 = cast %5 {{dtype={0}}}
  %c = constant {{dtype={0}, shape=[], values=[4]}}
  %7 = mul %6, %c
  %8 = add %2, %7
  %9 = cholesky %8
  %10 = sub %2, %8
  %11 = cholesky %10
  output "factor" %9
  output "none" %11
}})",
                     dtype, batch, n, rank - 2, rank - 1);
}

/// Solves with both triangles of a matrix with a large diagonal.
std::string solve(std::string_view dtype, std::string_view batch, std::string_view n, std::string_view k,
                  std::string_view attributes) {
  return fmt::format(R"(graph @solve(input %x: {0}[{1}{2}, {2}], input %b: {0}[{1}{2}, {3}]) {{
  %c = constant {{dtype={0}, shape=[], values=[0.2]}}
  %1 = mul %x, %c
  %row = iota {{dtype=i64, dim=0, shape=[{2}, 1]}}
  %column = iota {{dtype=i64, dim=1, shape=[1, {2}]}}
  %4 = eq %row, %column
  %5 = cast %4 {{dtype={0}}}
  %6 = add %1, %5
  %7 = solve_triangular %6, %b {{{4}}}
  output "x" %7
}})",
                     dtype, batch, n, k, attributes);
}

const std::vector<DimBindings> sizes_of_n = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

double tolerance_of(std::string_view dtype) { return dtype == "f64" ? 1e-12 : dtype == "f32" ? 2e-5 : 3e-2; }

}  // namespace

TEST_CASE("cholesky: sizes, batches, dtypes, and matrices that are not positive definite") {
  for (const char* dtype : {"f64", "f32", "bf16"}) {
    for (const char* n : {"1", "3", "16", "37"}) {
      CAPTURE(dtype, n);
      check(factor(dtype, "", n, 2), {.tolerance = tolerance_of(dtype)});
      check(factor(dtype, "2, ", n, 3), {.tolerance = tolerance_of(dtype)});
    }
    check(factor(dtype, "", "n", 2), {.sizes = sizes_of_n, .tolerance = tolerance_of(dtype)});
  }
  check(factor("f64", "m, 2, ", "n", 4), {.sizes = {{{"m", 3}, {"n", 5}}, {{"m", 0}, {"n", 5}}}});
}

TEST_CASE("solve_triangular: both triangles, transposed or not, one and many columns") {
  for (const char* dtype : {"f64", "f32", "bf16"})
    for (const char* attributes : {"upper=false", "upper=true", "transpose=true", "upper=true, transpose=true",
                                   "unit_diagonal=true", "upper=true, unit_diagonal=true"})
      for (const char* k : {"1", "9"}) {
        CAPTURE(dtype, attributes, k);
        check(solve(dtype, "", "7", k, attributes), {.tolerance = tolerance_of(dtype)});
      }
  check(solve("f32", "2, ", "12", "70", "transpose=true"), {.tolerance = 2e-5});
  check(solve("f64", "3, ", "n", "k", "upper=true"),
        {.sizes = {{{"n", 5}, {"k", 3}}, {{"n", 1}, {"k", 20}}, {{"n", 0}, {"k", 2}}, {{"n", 4}, {"k", 0}}}});
}

TEST_CASE("prod: rows, columns and all elements, and the gradient by n products") {
  const auto product = [](std::string_view dtype, std::string_view shape, std::string_view dims) {
    return fmt::format(R"(graph @product(input %x: {0}{1}) {{
  %1 = prod %x {{dims={2}}}
  output "y" %1
}})",
                       dtype, shape, dims);
  };
  for (const char* dtype : {"f64", "f32", "bf16", "i64", "i32"})
    for (const char* dims : {"[0]", "[1]", "[0, 1]", "[]"}) {
      CAPTURE(dtype, dims);
      check(product(dtype, "[3, 40]", dims), {.tolerance = std::string_view(dtype) == "bf16" ? 3e-2 : 1e-5});
      check(product(dtype, "[50, 3]", dims), {.tolerance = std::string_view(dtype) == "bf16" ? 3e-2 : 1e-5});
    }
  check(product("f32", "[n, 5]", "[0]"), {.sizes = sizes_of_n, .tolerance = 1e-5});
  check(product("f64", "[2, n]", "[1]"), {.sizes = sizes_of_n});
}

TEST_CASE("bits of integers: vectors and tails") {
  for (const char* dtype : {"i64", "i32"})
    for (const char* op :
         {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "shift_right_logical"}) {
      CAPTURE(dtype, op);
      check(fmt::format("graph @bits(input %x: {0}[n], input %y: {0}[n]) {{\n  %c = constant {{dtype={0}, shape=[], "
                        "values=[12345]}}\n  %1 = mul %x, %c\n  "
                        "%2 = {1} %1, %y\n  %3 = bitwise_not %2\n  output \"y\" %2\n  output \"not\" %3\n}}",
                        dtype, op),
            {.sizes = sizes_of_n, .top = 70});
    }
}

TEST_CASE("log1p and expm1: within 4 units in the last place of f32, near 0 and far from it") {
  const ir::Graph graph = test::parse(R"(graph @near_zero(input %x: f32[n]) {
  %1 = log1p %x
  %2 = expm1 %x
  output "log1p" %1
  output "expm1" %2
})");
  Executable run = compile(graph, {});
  HostTensor x(f32, {4000});
  for (std::int64_t i = 0; i < x.numel(); ++i)
    x.set(i, (i % 2 == 0 ? 1 : -0.99) * std::exp(-18 + 21.5 * static_cast<double>(i / 2) / 2000));
  const Tensors found = run.run({{"x", x}});
  const auto most_units = [&](const char* name, double (*exact)(double)) {
    double most = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double wanted = exact(x.get(i));
      if (std::isnan(wanted)) continue;
      const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
      most = std::max(most, std::abs(found.at(name).get(i) - wanted) / unit);
    }
    return most;
  };
  CHECK(most_units("log1p", std::log1p) < 4);
  CHECK(most_units("expm1", std::expm1) < 4);
}
