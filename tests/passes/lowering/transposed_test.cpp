#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// The kernels for values that are read transposed.
using namespace lathe;

namespace {

std::string kernel_of(std::string_view text, int bits) {
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "t.lathe"), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, test::cpu_with(bits));
  REQUIRE(program.kernels.size() == 1);
  return kernel::print(program.kernels[0]);
}

std::string copy_of(const std::string& type) {
  return "graph @g(input %x: " + type +
         ") {\n  %1 = transpose %x {dim0=0, dim1=1}\n  %2 = contiguous %1\n  output \"y\" %2\n}";
}

}  // namespace

TEST_CASE("a transposed copy loads and stores whole vectors, with shuffles between them", "[lowering]") {
  CHECK(kernel_of(copy_of("f32[4, 8]"), 128) == R"(kernel @k0_transposed(b0: read f32, b1: write f32) {
  note "%2 contiguous t.lathe:3"
  for i0 in 0..1 step 1 @parallel {
    alloc square: f32[16] @stack
    for i1 in 0..4 step 4 @serial {
      for i2 in 0..8 step 4 @serial {
        %0 = mul i1, 8 : i64
        %1 = add i2, %0 : i64
        %2 = load b0[%1] : f32x4
        %3 = add i1, 1 : i64
        %4 = mul %3, 8 : i64
        %5 = add i2, %4 : i64
        %6 = load b0[%5] : f32x4
        %7 = add i1, 2 : i64
        %8 = mul %7, 8 : i64
        %9 = add i2, %8 : i64
        %10 = load b0[%9] : f32x4
        %11 = add i1, 3 : i64
        %12 = mul %11, 8 : i64
        %13 = add i2, %12 : i64
        %14 = load b0[%13] : f32x4
        %15 = shuffle %2, %6 {0, 4, 1, 5} : f32x4
        %16 = shuffle %10, %14 {0, 4, 1, 5} : f32x4
        %17 = shuffle %15, %16 {0, 1, 4, 5} : f32x4
        %18 = shuffle %15, %16 {2, 3, 6, 7} : f32x4
        %19 = shuffle %2, %6 {2, 6, 3, 7} : f32x4
        %20 = shuffle %10, %14 {2, 6, 3, 7} : f32x4
        %21 = shuffle %19, %20 {0, 1, 4, 5} : f32x4
        %22 = shuffle %19, %20 {2, 3, 6, 7} : f32x4
        store square[0] = %17
        store square[4] = %18
        store square[8] = %21
        store square[12] = %22
        for i3 in 0..4 step 1 @unroll {
          %23 = add i2, i3 : i64
          %24 = mul i3, 4 : i64
          %25 = load square[%24] : f32x4
          %26 = mul %23, 4 : i64
          %27 = add %26, i1 : i64
          store b1[%27] = %25
        }
      }
    }
  }
}
)");
}

TEST_CASE("a tile has as many vectors as a register has elements, at most 16", "[lowering]") {
  struct Tile {
    const char* dtype;
    int bits, side;
  };
  for (const auto& [dtype, bits, side] :
       {Tile{"f64", 128, 2}, Tile{"f64", 512, 8}, Tile{"i64", 256, 4}, Tile{"f32", 256, 8}, Tile{"f32", 512, 16},
        Tile{"bf16", 128, 8}, Tile{"bf16", 512, 16}, Tile{"i8", 128, 16}, Tile{"bool", 512, 16}}) {
    const std::string text = kernel_of(copy_of(fmt::format("{}[m, n]", dtype)), bits);
    CAPTURE(text);
    CHECK(text.find(fmt::format("square: {}[{}] @stack", dtype == std::string_view("bool") ? "u8" : dtype,
                                side * side)) != std::string::npos);
  }
  const std::string pixels = kernel_of(copy_of("f32[1000, 3]"), 512);
  CHECK(pixels.find("square: f32[64] @stack") != std::string::npos);
}

TEST_CASE("a tile with an expensive program is not unrolled", "[lowering]") {
  const auto unrolls = [](int additions) {
    std::string text =
        "graph @g(input %x: f32[64, 64], input %z: f32[64, 64]) {\n  %y0 = transpose %x {dim0=0, dim1=1}\n";
    for (int i = 0; i < additions; ++i) text += fmt::format("  %y{} = add %y{}, %z\n", i + 1, i);
    text += fmt::format("  output \"y\" %y{}\n}}", additions);
    return kernel_of(text, 512).find("@unroll") != std::string::npos;
  };
  CHECK(unrolls(2));
  CHECK_FALSE(unrolls(20));
}

TEST_CASE("a transposed result larger than the caches is streamed", "[lowering]") {
  CHECK(kernel_of(copy_of("f32[8192, 2048]"), 512).find("stream ") != std::string::npos);
  CHECK(kernel_of(copy_of("f32[1024, 1024]"), 512).find("stream ") == std::string::npos);
}

TEST_CASE("positions in a reshaped iota are computed by their user", "[lowering]") {
  const std::string text = kernel_of(R"(graph @g(input %x: i64[m, n]) {
  %1 = iota {shape=[m*n], dim=0, dtype=i64}
  %2 = view %1 {shape=[m, n]}
  %3 = slice %2 {dim=1, start=0, stop=1}
  %4 = add %x, %3
  output "y" %4
})",
                                     512);
  CHECK(text.find("(b0: read i64, b1: write i64; d0, d1)") != std::string::npos);
}
