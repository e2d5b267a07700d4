#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"

/// Orthonormal bases of matrices, compiled.
using namespace lathe;
using lathe::test::check;

namespace {

/// The basis of x + 3 on its diagonal [batch.., m, n].
std::string basis(std::string_view dtype, std::string_view batch, std::string_view m, std::string_view n) {
  return fmt::format(R"(graph @basis(input %x: {0}[{1}{2}, {3}]) {{
  %row = iota {{dtype=i64, dim=0, shape=[{2}, 1]}}
  %column = iota {{dtype=i64, dim=1, shape=[1, {3}]}}
  %3 = eq %row, %column
  %4 = cast %3 {{dtype={0}}}
  %c = constant {{dtype={0}, shape=[], values=[3]}}
  %5 = mul %4, %c
  %6 = add %x, %5
  %7 = orthonormal_basis %6
  output "q" %7
}})",
                     dtype, batch, m, n);
}

/// The eigenvectors of a matrix with distinct eigenvalues, near 0, 1, 2, ...
std::string vectors(std::string_view dtype, std::string_view batch, std::string_view n) {
  return fmt::format(R"(graph @vectors(input %x: {0}[{1}{2}, {2}]) {{
  %row = iota {{dtype=i64, dim=0, shape=[{2}, 1]}}
  %column = iota {{dtype=i64, dim=1, shape=[1, {2}]}}
  %3 = eq %row, %column
  %4 = cast %3 {{dtype={0}}}
  %5 = cast %column {{dtype={0}}}
  %6 = mul %4, %5
  %c = constant {{dtype={0}, shape=[], values=[0.05]}}
  %7 = mul %x, %c
  %8 = add %7, %6
  %9 = eigenvectors %8
  output "v" %9
}})",
                     dtype, batch, n);
}

double tolerance(std::string_view dtype) { return dtype == "f64" ? 1e-11 : dtype == "f32" ? 1e-4 : 3e-2; }

const std::vector<DimBindings> run_sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

}  // namespace

TEST_CASE("orthonormal_basis: sizes, batches and dtypes") {
  for (const char* dtype : {"f64", "f32", "bf16"}) {
    for (const auto& [m, n] : {std::pair{"1", "1"}, {"3", "3"}, {"9", "2"}, {"16", "16"}, {"40", "37"}}) {
      CAPTURE(dtype, m, n);
      check(basis(dtype, "", m, n), {.tolerance = tolerance(dtype)});
      check(basis(dtype, "2, ", m, n), {.tolerance = tolerance(dtype)});
    }
    check(basis(dtype, "", "n", "n"), {.sizes = run_sizes, .tolerance = tolerance(dtype)});
  }
  check(basis("f64", "3, 2, ", "n + k", "n"), {.sizes = {{{"n", 5}, {"k", 2}}, {{"n", 0}, {"k", 2}}}});
}

TEST_CASE("eigenvectors: sizes, batches and dtypes") {
  for (const char* dtype : {"f64", "f32"}) {
    for (const char* n : {"1", "3", "16", "37"}) {
      CAPTURE(dtype, n);
      check(vectors(dtype, "", n), {.tolerance = tolerance(dtype)});
    }
    check(vectors(dtype, "2, ", "5"), {.tolerance = tolerance(dtype)});
    check(vectors(dtype, "", "n"), {.sizes = run_sizes, .tolerance = tolerance(dtype)});
  }
}

TEST_CASE("bases: the third operand where the second one is false") {
  for (const char* condition : {"le", "lt"}) {
    CAPTURE(condition);
    check(fmt::format(R"(graph @either(input %x: f32[2, 9, 9], input %y: f32[2, 9, 9], input %s: f32[]) {{
  %1 = {} %s, %s
  %2 = mul %y, %s
  %3 = orthonormal_basis %x, %1, %2
  %4 = eigenvectors %x, %1, %2
  %5 = matmul %4, %y
  output "q" %3
  output "v" %4
  output "product" %5
}})",
                      condition),
          {.tolerance = 1e-3});
  }
}
