#include "passes/fusion/prepare/pad_products.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("pad_products: rows of an odd length are padded for all matmuls that read them") {
  const ir::Graph graph = parse(
      R"(graph @g(input %g: bf16[n, 257], input %x: bf16[n, 16], parameter %w: f32[257, 64]) {
  %1 = cast %w {dtype=bf16}
  %2 = contract %g, %1 {spec="av,vd->ad"}
  %3 = contract %g, %x {spec="av,ad->vd"}
  output "dx" %2
  output "dw" %3
})");
  const ir::Graph after = pad_products(graph);
  CHECK(text(after) == R"(graph @g(input %g: bf16[n, 257], input %x: bf16[n, 16], parameter %w: f32[257, 64]) {
  %1 = cast %w {dtype=bf16} : bf16[257, 64]
  %2 = pad %1 {dim=0, low=0, high=7} : bf16[264, 64]
  %3 = pad %g {dim=1, low=0, high=7} : bf16[n, 264]
  %4 = contract %3, %2 {spec="av,vd->ad"} : bf16[n, 64]
  %5 = contract %3, %x {spec="av,ad->vd"} : bf16[264, 16]
  %6 = slice %5 {dim=0, start=0, stop=257} : bf16[257, 16]
  output "dx" %4
  output "dw" %6
}
)");
  const Tensors arguments = random_arguments(graph, {{"n", 5}});
  const Tensors expected = interpret(graph, arguments), found = interpret(after, arguments);
  for (const auto& [name, value] : expected) CHECK(lathe::test::error_of(found.at(name), value) == 0);
  CHECK(text(pad_products(after)) == text(after));
}

TEST_CASE("pad_products: logits have padded columns and so has their gradient which is not copied") {
  const ir::Graph graph = parse(
      R"(graph @g(input %x: bf16[n, 64], parameter %w: bf16[257, 64], input %t: i32[n, 1]) {
  %1 = contract %x, %w {spec="ad,vd->av"}
  %2 = cast %1 {dtype=f32}
  %3 = max %2 {dims=[1], keepdim=true}
  %4 = sub %2, %3
  %5 = exp %4
  %6 = sum %5 {dims=[1], keepdim=true}
  %7 = div %5, %6
  %8 = iota {shape=[257], dim=0, dtype=i32}
  %9 = eq %8, %t
  %10 = cast %9 {dtype=f32}
  %11 = sub %7, %10
  %12 = cast %11 {dtype=bf16}
  %13 = contract %12, %w {spec="av,vd->ad"}
  %14 = contract %12, %x {spec="av,ad->vd"}
  output "dx" %13
  output "dw" %14
})");
  const ir::Graph after = pad_products(graph);
  CHECK(text(after) == R"(graph @g(input %x: bf16[n, 64], parameter %w: bf16[257, 64], input %t: i32[n, 1]) {
  %1 = pad %w {dim=0, low=0, high=7} : bf16[264, 64]
  %2 = contract %x, %1 {spec="ad,vd->av"} : bf16[n, 264]
  %3 = slice %2 {dim=1, start=0, stop=257} : bf16[n, 257] strided
  %4 = cast %3 {dtype=f32} : f32[n, 257]
  %5 = max %4 {dims=[1], keepdim=true} : f32[n, 1]
  %6 = sub %4, %5 : f32[n, 257]
  %7 = exp %6 : f32[n, 257]
  %8 = sum %7 {dims=[1], keepdim=true} : f32[n, 1]
  %9 = cast %2 {dtype=f32} : f32[n, 264]
  %10 = sub %9, %5 : f32[n, 264]
  %11 = exp %10 : f32[n, 264]
  %12 = div %11, %8 : f32[n, 264]
  %13 = iota {shape=[264], dim=0, dtype=i32} : i32[264]
  %14 = eq %13, %t : bool[n, 264]
  %15 = cast %14 {dtype=f32} : f32[n, 264]
  %16 = sub %12, %15 : f32[n, 264]
  %17 = cast %16 {dtype=bf16} : bf16[n, 264]
  %18 = constant {dtype=i32, shape=[], values=[257.0]} : i32[]
  %19 = lt %13, %18 : bool[264]
  %20 = constant {dtype=bf16, shape=[], values=[0.0]} : bf16[]
  %21 = where %19, %17, %20 : bf16[n, 264]
  %22 = contract %21, %1 {spec="av,vd->ad"} : bf16[n, 64]
  %23 = contract %21, %x {spec="av,ad->vd"} : bf16[264, 64]
  %24 = slice %23 {dim=0, start=0, stop=257} : bf16[257, 64]
  output "dx" %22
  output "dw" %24
}
)");
  const Tensors arguments = random_arguments(graph, {{"n", 5}});
  const Tensors expected = interpret(graph, arguments), found = interpret(after, arguments);
  for (const auto& [name, value] : expected) CHECK(lathe::test::error_of(found.at(name), value) == 0);
  CHECK(text(pad_products(after)) == text(after));
}

TEST_CASE("pad_products: columns that are outputs or read contiguously or with few rows are unchanged") {
  const auto stays = [](std::string_view arguments, std::string_view rest) {
    const ir::Graph graph = parse("graph @g(" + std::string(arguments) +
                                  ") {\n  %1 = contract %x, %w {spec=\"ad,vd->av\"}\n" + std::string(rest) + "}");
    CHECK(text(pad_products(graph)) == text(graph));
  };
  const std::string_view sum = "  %2 = sum %1 {dims=[1], keepdim=true}\n  output \"y\" %2\n",
                         large = "input %x: bf16[n, 64], parameter %w: bf16[257, 64]";
  stays(large, "  %2 = sum %1 {dims=[1], keepdim=true}\n  output \"y\" %2\n  output \"z\" %1\n");
  stays(large,
        "  %2 = cast %1 {dtype=f32}\n  %3 = sum %2 {dims=[1], keepdim=true}\n  output \"y\" %3\n"
        "  output \"z\" %2\n");
  stays(large, "  %2 = exp %1\n  output \"y\" %2\n");
  stays(large, "  %2 = sum %1 {dims=[0], keepdim=true}\n  output \"y\" %2\n");
  stays("input %x: bf16[511, 64], parameter %w: bf16[257, 64]", sum);
  stays("input %x: bf16[n, 64], parameter %w: bf16[255, 64]", sum);
  stays("input %x: f32[n, 64], parameter %w: f32[260, 64]", sum);
  stays("input %x: f64[n, 64], parameter %w: f64[257, 64]", sum);
}

TEST_CASE("pad_products: short or even rows, attention weights and f32 are unchanged") {
  const auto stays = [](std::string_view arguments, std::string_view spec) {
    const ir::Graph graph = parse("graph @g(" + std::string(arguments) + ") {\n  %1 = contract %g, %w {spec=\"" +
                                  std::string(spec) + "\"}\n  output \"y\" %1\n}");
    CHECK(text(pad_products(graph)) == text(graph));
  };
  stays("input %g: bf16[n, 255], parameter %w: bf16[255, 64]", "av,vd->ad");
  stays("input %g: bf16[n, 264], parameter %w: bf16[264, 64]", "av,vd->ad");
  stays("input %g: f32[n, 257], parameter %w: f32[257, 64]", "av,vd->ad");
  stays("input %g: bf16[n, 257], parameter %w: bf16[257, 8]", "av,vd->ad");
  stays("input %g: bf16[n, v], parameter %w: bf16[v, 64]", "av,vd->ad");
  const ir::Graph attention = parse(R"(graph @g(input %w: f32[n, 257], input %v: bf16[257, 64]) {
  %1 = cast %w {dtype=bf16}
  %2 = add %v, %v
  %3 = contract %1, %2 {spec="av,vd->ad"}
  output "y" %3
})");
  CHECK(text(pad_products(attention)) == text(attention));
}
