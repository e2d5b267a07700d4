#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"

/// Ops along a dim: cumulative sums, sorting, scatter by index.
using namespace lathe;
using lathe::test::check;

namespace {

/// Applies an op to a value that is computed from an input of this type, after other lines.
std::string along(std::string_view type, std::string_view op, std::string_view lines = "") {
  return fmt::format(R"(graph @along(input %x: {}) {{
  {}%1 = add %x, %x
  %2 = {}
  output "y" %2
}})",
                     type, lines, op);
}

const std::vector<DimBindings> sizes_of_n = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}, {{"n", 300}}};

}  // namespace

TEST_CASE("cumsum: all dims, dtypes and directions") {
  for (const char* dtype : {"f64", "f32", "bf16", "i64", "i32"})
    for (const char* type : {"[3, 37]", "[37, 3]", "[2, 19, 5]", "[300]", "[4, 1]"})
      for (const int dim : {0, -1})
        for (const char* way : {"exclusive=false, reverse=false", "exclusive=true, reverse=true"}) {
          const std::string text =
              along(fmt::format("{}{}", dtype, type), fmt::format("cumsum %1 {{dim={}, {}}}", dim, way));
          CAPTURE(text);
          check(text, {.tolerance = std::string_view(dtype) == "bf16" ? 2e-2 : 2e-6});
        }
  check(along("f32[3, n]", "cumsum %1 {dim=1, exclusive=true, reverse=false}"),
        {.sizes = sizes_of_n, .tolerance = 1e-5});
  check(along("f64[n, 3]", "cumsum %x {dim=0, exclusive=false, reverse=true}"),
        {.sizes = sizes_of_n, .tolerance = 1e-12});
  check(along("f32[2, 3, n]", "cumsum %1 {dim=1}"), {.sizes = sizes_of_n, .tolerance = 1e-6});
}

TEST_CASE("linear_recurrence: all dims, dtypes and directions") {
  const auto recurrence = [](const std::string& type, int dim, bool reverse) {
    return along(type, fmt::format("linear_recurrence %a, %1 {{dim={}, reverse={}}}", dim, reverse),
                 "%a = tanh %x\n  ");
  };
  for (const char* dtype : {"f64", "f32", "bf16"})
    for (const char* type : {"[3, 37]", "[37, 3]", "[2, 19, 5]", "[300]", "[4, 1]"})
      for (const int dim : {0, -1})
        for (const bool reverse : {false, true}) {
          const std::string text = recurrence(fmt::format("{}{}", dtype, type), dim, reverse);
          CAPTURE(text);
          check(text, {.tolerance = std::string_view(dtype) == "bf16" ? 2e-2 : 2e-6});
        }
  for (const bool reverse : {false, true}) {
    check(recurrence("f32[3, n]", 1, reverse), {.sizes = sizes_of_n, .tolerance = 1e-5});
    check(recurrence("f64[n, 3]", 0, reverse), {.sizes = sizes_of_n, .tolerance = 1e-12});
    check(recurrence("f32[2, n, 70]", 1, reverse), {.sizes = sizes_of_n, .tolerance = 1e-6});
  }
}

TEST_CASE("linear_recurrence: a state of 0 stays 0 where the product of the factors overflows") {
  check(R"(graph @overflow(input %x: f32[2, 300]) {
  %1 = eq %x, %x
  %2 = constant {values=[1e30], shape=[2, 300], dtype=f32}
  %3 = iota {shape=[2, 300], dim=1, dtype=f32}
  %4 = constant {values=[299], shape=[], dtype=f32}
  %5 = eq %3, %4
  %6 = cast %5 {dtype=f32}
  %7 = linear_recurrence %2, %6 {dim=1}
  output "y" %7
})",
        {});
}

TEST_CASE("argsort: rows and columns, equal elements") {
  for (const char* type :
       {"f32[37]", "f64[3, 19]", "i64[5, 16]", "i32[40, 3]", "bf16[2, 33, 2]", "f32[1, 1]", "f32[4, 0]"})
    for (const int dim : {0, -1})
      for (const bool descending : {false, true}) {
        const std::string text = along(type, fmt::format("argsort %1 {{dim={}, descending={}}}", dim, descending));
        CAPTURE(text);
        for (const unsigned seed : {1, 2}) check(text, {.seed = seed, .top = 7});
      }
  check(along("i64[3, n]", "argsort %1 {dim=1, descending=true}"), {.sizes = sizes_of_n, .top = 9});
  check(along("f32[n, 2]", "argsort %x {dim=0}"), {.sizes = sizes_of_n});
}

TEST_CASE("top_k: the first elements of a row") {
  for (const char* type : {"f32[37]", "f64[3, 19]", "i64[16, 5]", "i32[40, 7]", "bf16[6, 33]"})
    for (const int k : {0, 1, 2, 5})
      for (const int dim : {0, -1}) {
        if (k == 5 && std::string_view(type).starts_with("f64") && dim == 0) continue;
        for (const bool largest : {false, true}) {
          const std::string text = along(type, fmt::format("top_k %1 {{k={}, dim={}, largest={}}}", k, dim, largest));
          CAPTURE(text);
          check(text, {.top = 6});
        }
      }
  check(along("f32[3, n]", "top_k %x {k=n}"), {.sizes = sizes_of_n});
  check(along("i64[n, 70]", "top_k %1 {k=9}"), {.sizes = sizes_of_n, .top = 5});
}

TEST_CASE("argsort and top_k: NaN, infinities and both zeros") {
  const std::string text = R"(graph @nan(input %x: f32[3, 40]) {
  %1 = floor %x
  %2 = log %1
  %3 = argsort %2 {dim=1, descending=false}
  %4 = argsort %2 {dim=1, descending=true}
  %5 = top_k %2 {k=7, dim=1, largest=true}
  %6 = top_k %2 {k=25, dim=1, largest=false}
  output "up" %3
  output "down" %4
  output "best" %5
  output "least" %6
})";
  for (const unsigned seed : {1, 2, 3}) check(text, {.seed = seed});
}

TEST_CASE("update_rows: a position for each element") {
  const auto scatter = [](std::string_view dtype, std::string_view shape, std::string_view rows, int dim) {
    return fmt::format(R"(graph @scatter(input %x: {0}{1}, input %rows: {0}{2}, input %at: i64{2}) {{
  %1 = update_rows %x, %at, %rows {{dim={3}}}
  output "y" %1
}})",
                       dtype, shape, rows, dim);
  };
  for (const char* dtype : {"f64", "f32", "bf16", "i64", "bool"})
    for (const std::string& text :
         {scatter(dtype, "[7, 37]", "[5, 37]", 0), scatter(dtype, "[6, 7]", "[6, 9]", 1),
          scatter(dtype, "[2, 7, 5]", "[2, 3, 5]", 1), scatter(dtype, "[2, 3, 7, 300]", "[2, 3, 4, 300]", 2)}) {
      CAPTURE(text);
      for (const unsigned seed : {1, 2}) check(text, {.tolerance = 1e-2, .seed = seed, .top = 5});
    }
  check(scatter("f32", "[a, n, b]", "[a, t, b]", 1), {.sizes = {{{"a", 2}, {"n", 7}, {"b", 19}, {"t", 3}},
                                                                {{"a", 1}, {"n", 6}, {"b", 1}, {"t", 11}},
                                                                {{"a", 2}, {"n", 6}, {"b", 3}, {"t", 0}},
                                                                {{"a", 0}, {"n", 6}, {"b", 3}, {"t", 2}}},
                                                      .tolerance = 1e-6,
                                                      .top = 5});
}

TEST_CASE("grouped products: segments of rows, some empty, tensors without rows") {
  const auto grouped = [](std::string_view dtype, std::string_view s, std::string_view n, std::string_view k) {
    return fmt::format(R"(graph @grouped(input %x: {0}[{1}, {3}], input %y: {0}[{1}, {2}], input %counts: i64[3],
  input %u: {0}[{2}, {3}], input %v: {0}[{2}, {3}], input %w: {0}[{2}, {3}], input %t: {0}[{3}, {2}]) {{
  %1 = cumsum %counts {{dim=0}}
  %2 = pad %1 {{dim=0, low=1, high=0}}
  %3 = grouped_matmul %x, %2, %u, %v, %w
  %4 = transpose %t {{dim0=0, dim1=1}}
  %5 = grouped_matmul %x, %2, %4, %u, %4
  %6 = segment_outer %y, %x, %2 {{segment=0}}
  %9 = segment_outer %y, %x, %2 {{segment=2}}
  %10 = segment_outer %y, %x, %2 {{segment=1}}
  %7 = add %x, %x
  %8 = grouped_matmul %7, %2, %w, %w, %v
  output "y" %3
  output "t" %5
  output "o" %6
  output "p" %9
  output "q" %10
  output "c" %8
}})",
                       dtype, s, n, k);
  };
  for (const char* dtype : {"f64", "f32", "bf16"}) {
    const double tolerance = std::string_view(dtype) == "bf16"  ? 2e-2
                             : std::string_view(dtype) == "f32" ? 1e-5
                                                                : 1e-12;
    for (const unsigned seed : {1, 2, 3}) {
      check(grouped(dtype, "20", "7", "5"), {.tolerance = tolerance, .seed = seed, .top = 6});
      check(grouped(dtype, "60", "37", "33"), {.tolerance = tolerance, .seed = seed, .top = 20});
    }
    check(grouped(dtype, "s", "n", "k"), {.sizes = {{{"s", 40}, {"n", 17}, {"k", 50}},
                                                    {{"s", 40}, {"n", 1}, {"k", 3}},
                                                    {{"s", 40}, {"n", 4}, {"k", 0}}},
                                          .tolerance = tolerance,
                                          .top = 13});
  }
}
