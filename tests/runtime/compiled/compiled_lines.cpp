#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/lower.h"

/// Rows that cover several lines of an image, of which a read takes a part: vectors pass the ends of lines.
using namespace lathe;
using lathe::test::check;
using lathe::test::n_sizes;

namespace {

/// Sums parts of images, 2 rows and 1 column from their corner.
std::string sum_of_part(int height, int width, std::string_view dtype) {
  return fmt::format(R"(graph @g(input %x: {2}[n, {3}, {4}]) {{
  %1 = slice %x {{dim=1, start=2, stop={0}}}
  %2 = slice %1 {{dim=2, start=1, stop={1}}}
  %3 = sum %2 {{dims=[1, 2]}}
  output "y" %3
}})",
                     height + 2, width + 1, dtype, height + 3, width + 2);
}

/// Sums every step-th column of images.
std::string sum_of_every(int step, int columns) {
  return fmt::format(R"(graph @g(input %x: f32[n, 9, {0}]) {{
  %1 = slice %x {{dim=2, start=0, stop={1}, step={2}}}
  %2 = sum %1 {{dims=[1, 2]}}
  output "y" %2
}})",
                     columns + 4, columns, step);
}

bool gathers(const std::string& text) {
  const ir::Graph graph = ir::run_pipeline(test::parse(text), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, *find_cpu_info("x86-64-v4"));
  return kernel::print(program.kernels.at(0)).find(" gather ") != std::string::npos;
}

}  // namespace

TEST_CASE("lines: vectors over the ends of lines of any length equal the interpreter") {
  for (const int width : {2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 28, 31, 33, 56})
    for (const int height : {1, 2, 3, 11}) check(sum_of_part(height, width, "f64"), {.sizes = {{{"n", 3}}}});
  for (const int width : {7, 14, 28, 30})
    for (const char* const dtype : {"f32", "bf16", "f16", "i64", "i32"})
      check(sum_of_part(9, width, dtype), {.sizes = n_sizes, .tolerance = 1e-5});
}

TEST_CASE("lines: dims before them, of size 1 and of unknown size, and lines of several images") {
  check(R"(graph @g(input %x: f64[n, 3, 1, 5, 1, 9]) {
  %1 = slice %x {dim=5, start=1, stop=8}
  %2 = sum %1 {dims=[1, 2, 3, 4, 5]}
  output "y" %2
})",
        {.sizes = n_sizes});
  check(R"(graph @g(input %x: f64[2, n, 16, 1]) {
  %1 = slice %x {dim=2, start=0, stop=14}
  %2 = max %1 {dims=[1, 2, 3]}
  output "y" %2
})",
        {.sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 37}}}});
  check(R"(graph @g(input %x: f64[3, 4, 12, 9], input %d: f64[3, 4, 10, 7]) {
  %1 = slice %x {dim=2, start=1, stop=11}
  %2 = slice %1 {dim=3, start=2, stop=9}
  %3 = mul %2, %d
  %4 = transpose %3 {dim0=0, dim1=1}
  %5 = sum %4 {dims=[1, 2, 3]}
  output "y" %5
})");
}

TEST_CASE("lines: every second element, and elements in reverse order") {
  for (const int columns : {4, 14, 28, 30, 32, 34, 56})
    check(sum_of_every(2, columns), {.sizes = n_sizes, .tolerance = 1e-5});
  for (const int width : {5, 7, 15, 16, 28})
    check(fmt::format(R"(graph @g(input %x: f64[n, 9, {0}], input %d: f64[n, 9, {1}]) {{
  %1 = slice %x {{dim=2, start=1, stop={2}}}
  %2 = flip %1 {{dim=2}}
  %3 = mul %2, %d
  %4 = sum %3 {{dims=[1, 2]}}
  output "y" %4
}})",
                      width + 2, width, width + 1),
          {.sizes = n_sizes});
}

TEST_CASE("lines: several dims whose elements are adjacent are one line") {
  const auto part = [](std::string_view from, std::string_view dtype) {
    return fmt::format(R"(graph @g(input %x: {1}[n, 6, {0}]) {{
  %1 = slice %x {{dim=1, start=1, stop=5}}
  %2 = transpose %1 {{dim0=0, dim1=1}}
  %3 = contiguous %2
  output "y" %3
}})",
                       from, dtype);
  };
  for (const char* const from : {"3, 3", "1, 9", "2, 1, 5", "3, 5", "16, 1"})
    for (const char* const dtype : {"f64", "f32"}) check(part(from, dtype), {.sizes = n_sizes});
}

TEST_CASE("lines: windows of a matmul") {
  for (const int step : {1, 2})
    for (const int width : {9, 16, 18, 30, 34})
      check(fmt::format(R"(graph @g(input %w: f32[70, 5, 3, 3], input %x: f32[n, 5, 7, {0}]) {{
  %1 = conv %x, %w {{stride=[{1}, {1}], low=[0, 0], high=[0, 0], dilation=[1, 1]}}
  output "y" %1
}})",
                        width, step),
            {.sizes = {{{"n", 3}}}, .tolerance = 1e-5});
}

TEST_CASE("lines: lanes in the padding of an image read nothing") {
  check(R"(graph @g(input %x: f64[n, 9, 9], input %d: f64[n, 9, 9]) {
  %1 = pad %x {dim=1, low=2, high=1}
  %2 = pad %1 {dim=2, low=1, high=3}
  %3 = slice %2 {dim=1, start=0, stop=9}
  %4 = slice %3 {dim=2, start=0, stop=9}
  %5 = mul %4, %d
  %6 = sum %5 {dims=[1, 2]}
  output "y" %6
})",
        {.sizes = n_sizes});
}

TEST_CASE("lines: vectors load runs of elements unless there are many, or elements are not adjacent") {
  CHECK(!gathers(sum_of_part(9, 28, "f32")));
  CHECK(!gathers(sum_of_part(9, 7, "f32")));
  CHECK(gathers(sum_of_part(9, 3, "f32")));
  CHECK(!gathers(sum_of_every(2, 56)));
  CHECK(gathers(sum_of_every(2, 28)));
  CHECK(gathers(sum_of_every(3, 84)));
  CHECK(!gathers(R"(graph @g(input %x: f32[n, 9, 30]) {
  %1 = slice %x {dim=2, start=0, stop=28}
  %2 = flip %1 {dim=2}
  %3 = sum %2 {dims=[1, 2]}
  output "y" %3
})"));
}
