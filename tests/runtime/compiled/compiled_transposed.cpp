#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"

/// Values that are read transposed, tile by tile.
using namespace lathe;
using lathe::test::check;

namespace {

/// A permuted input, contiguous.
std::string permuted(std::string_view type, std::string_view dims) {
  return fmt::format(R"(graph @permuted(input %x: {}) {{
  %1 = permute %x {{dims={}}}
  %2 = contiguous %1
  output "y" %2
}})",
                     type, dims);
}

/// The number of kernels that transpose tiles, compiled for vectors of `bits` bits.
int transposed(const std::string& text, int bits) {
  const Program program = lower_cpu(ir::run_pipeline(lathe::test::parse(text), ir::default_pipeline()).graph,
                                    lathe::test::cpu_with(bits));
  return static_cast<int>(std::ranges::count_if(program.kernels, [](const kernel::Kernel& kernel) {
    return kernel.name.find("transposed") != std::string::npos;
  }));
}

/// Checks that compiled code, and the kernels for every vector width, give the results of the reference interpreter.
void check_transposed(const std::string& text, const lathe::test::CheckOptions& options = {}) {
  CAPTURE(text);
  for (const int bits : {128, 256, 512}) CHECK(transposed(text, bits) == 1);
  check(text, options);
}

}  // namespace

TEST_CASE("transposed copies: all dtypes, full and ragged tiles") {
  for (const char* dtype : {"f64", "f32", "bf16", "f16", "i64", "i32", "i8", "u8", "bool"})
    for (const char* sizes : {"[32, 48]", "[37, 19]", "[50, 3]", "[2, 70]", "[16, 5]"})
      check_transposed(permuted(fmt::format("{}{}", dtype, sizes), "[1, 0]"), {.tolerance = 0, .top = 100});
}

TEST_CASE("transposed copies: all ranks, and more than one block of tiles") {
  const std::pair<const char*, const char*> cases[] = {{"[67, 130]", "[1, 0]"},
                                                       {"[2, 20, 3, 9]", "[0, 3, 1, 2]"},
                                                       {"[2, 9, 20, 3]", "[0, 2, 3, 1]"},
                                                       {"[5, 4, 17]", "[2, 1, 0]"},
                                                       {"[5, 4, 17]", "[2, 0, 1]"},
                                                       {"[5, 4, 17]", "[1, 2, 0]"},
                                                       {"[3, 1, 18, 1, 5]", "[4, 1, 2, 3, 0]"},
                                                       {"[3, 2, 7, 2, 6]", "[1, 4, 3, 0, 2]"}};
  for (const auto& [sizes, dims] : cases)
    check_transposed(permuted(fmt::format("f32{}", sizes), dims), {.tolerance = 0});
}

TEST_CASE("transposed copies: tasks end where tiles do if one side is no power of two and shorter than a block") {
  for (const int side : {24, 33, 40, 48, 56})
    for (const int other : {192, 300})
      for (const auto& [rows, columns] : {std::pair{side, other}, std::pair{other, side}})
        check_transposed(permuted(fmt::format("f32[{}, {}]", rows, columns), "[1, 0]"), {.tolerance = 0});
}

TEST_CASE("transposed copies: sizes known only at run time") {
  const std::vector<DimBindings> sizes = {{{"m", 5}, {"n", 37}}, {{"m", 1}, {"n", 1}},   {{"m", 0}, {"n", 3}},
                                          {{"m", 3}, {"n", 0}},  {{"m", 70}, {"n", 16}}, {{"m", 129}, {"n", 66}}};
  for (const char* dtype : {"f32", "f64", "bf16", "u8"}) {
    check_transposed(permuted(fmt::format("{}[m, n]", dtype), "[1, 0]"), {.sizes = sizes, .tolerance = 0, .top = 9});
    check_transposed(permuted(fmt::format("{}[m, 3, n]", dtype), "[2, 0, 1]"),
                     {.sizes = sizes, .tolerance = 0, .top = 9});
  }
  check_transposed(permuted("f32[m, 48, n]", "[0, 2, 1]"), {.sizes = sizes, .tolerance = 0});
}

TEST_CASE("transposed operands of arithmetic, one and several") {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32"}) {
    const double tolerance = std::string_view(dtype) == "bf16" || std::string_view(dtype) == "f16" ? 2e-2 : 2e-6;
    for (const char* sizes : {"m=32, n=48", "m=21, n=37"}) {
      const auto [m, n] = std::string_view(sizes).starts_with("m=32") ? std::pair(32, 48) : std::pair(21, 37);
      check_transposed(
          fmt::format(R"(graph @g(input %x: {0}[{1}, {2}], input %z: {0}[{1}, {2}], input %w: {0}[{2}, {1}],
    input %row: {0}[{1}], input %column: {0}[{2}, 1]) {{
  %1 = transpose %x {{dim0=0, dim1=1}}
  %2 = transpose %z {{dim0=0, dim1=1}}
  %3 = mul %1, %w
  %4 = add %3, %2
  %5 = add %4, %row
  %6 = mul %5, %column
  %7 = maximum %6, %1
  output "y" %7
}})",
                      dtype, m, n),
          {.tolerance = tolerance});
    }
  }
  check_transposed(R"(graph @g(input %x: f32[n, 40], input %w: f32[40, n], input %p: bool[n, 40]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = transpose %p {dim0=0, dim1=1}
  %3 = exp %1
  %4 = where %2, %3, %w
  output "y" %4
})",
                   {.sizes = lathe::test::n_sizes, .tolerance = 2e-6});
}

TEST_CASE("transposed parts of a concat and of a pad") {
  check_transposed(R"(graph @g(input %x: f32[21, 37], input %z: f32[21, 5]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = transpose %z {dim0=0, dim1=1}
  %3 = concat %1, %2 {dim=0}
  %4 = pad %3 {dim=1, low=3, high=2}
  output "y" %4
})",
                   {.tolerance = 0});
}

TEST_CASE("a state updated by its own transpose plus another value") {
  check(R"(graph @g(state %s: f32[33, 33], input %x: f32[33, 33]) {
  %1 = transpose %s {dim0=0, dim1=1}
  %2 = add %1, %x
  update %s <- %2
})",
        {.tolerance = 1e-6});
  check(R"(graph @g(state %s: f32[33, 17], input %x: f32[17, 33]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = add %s, %1
  update %s <- %2
})",
        {.tolerance = 1e-6});
}

TEST_CASE("transposed values have the same bits on every target and any number of threads") {
  for (const char* dtype : {"f32", "f64", "bf16", "i8"})
    for (const std::string& text : {permuted(fmt::format("{}[130, 75]", dtype), "[1, 0]"),
                                    permuted(fmt::format("{}[2, 70, 3, 66]", dtype), "[0, 3, 1, 2]")}) {
      const ir::Graph graph = lathe::test::parse(text);
      const Tensors arguments = lathe::test::random_arguments(graph, {}, 1, 100);
      const HostTensor expected = ir::interpret(graph, arguments).at("y");
      for (const char* target : {"host", "x86-64-v3", "x86-64-v2"})
        for (const int threads : {1, 3}) {
          CAPTURE(text, target, threads);
          Executable executable = compile(graph, {.target = Target::named(target),
                                                  .threads = threads,
                                                  .cache = lathe::test::shared_kernels(),
                                                  .poison = true});
          const Tensors results = executable.run(arguments);
          CHECK(lathe::test::same_bits(results.at("y"), expected));
        }
    }
}

TEST_CASE("contiguous copies, and copies strided along both dims, use the plain kernel") {
  const auto expect_none = [](const std::string& text) {
    CAPTURE(text);
    for (const int bits : {128, 256, 512}) CHECK(transposed(text, bits) == 0);
    check(text, {.tolerance = 2e-6});
  };
  expect_none(permuted("f32[6, 5, 32]", "[1, 0, 2]"));
  expect_none(permuted("f32[40, 1]", "[1, 0]"));
  expect_none(permuted("f32[1, 40]", "[1, 0]"));
  expect_none(R"(graph @g(input %x: f32[20, 30]) {
  %1 = exp %x
  output "y" %1
})");
  expect_none(R"(graph @g(input %x: f32[20, 30]) {
  %1 = slice %x {dim=1, start=0, stop=30, step=2}
  %2 = contiguous %1
  output "y" %2
})");
  expect_none(R"(graph @g(input %x: f32[20, 30]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = sum %1 {dims=[1]}
  output "y" %2
})");
}
