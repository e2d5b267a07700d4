#include "passes/fusion/prepare/pad_products.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("pad_products: rows of an odd length are padded for all products that read them") {
  const Graph graph = parse(
      R"(graph @g(input %g: bf16[n, 257], input %x: bf16[n, 16], parameter %w: f32[257, 64]) {
  %1 = cast %w {dtype=bf16}
  %2 = contract %g, %1 {spec="av,vd->ad"}
  %3 = contract %g, %x {spec="av,ad->vd"}
  output "dx" %2
  output "dw" %3
})");
  const Graph after = pad_products(graph);
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

TEST_CASE("pad_products: short or even rows, weights of an attention and f32 stay as they are") {
  const auto stays = [](std::string_view arguments, std::string_view spec) {
    const Graph graph = parse("graph @g(" + std::string(arguments) + ") {\n  %1 = contract %g, %w {spec=\"" +
                              std::string(spec) + "\"}\n  output \"y\" %1\n}");
    CHECK(text(pad_products(graph)) == text(graph));
  };
  stays("input %g: bf16[n, 255], parameter %w: bf16[255, 64]", "av,vd->ad");
  stays("input %g: bf16[n, 264], parameter %w: bf16[264, 64]", "av,vd->ad");
  stays("input %g: f32[n, 257], parameter %w: f32[257, 64]", "av,vd->ad");
  stays("input %g: bf16[n, 257], parameter %w: bf16[257, 8]", "av,vd->ad");
  stays("input %g: bf16[n, v], parameter %w: bf16[v, 64]", "av,vd->ad");
  const Graph attention = parse(R"(graph @g(input %w: f32[n, 257], input %v: bf16[257, 64]) {
  %1 = cast %w {dtype=bf16}
  %2 = add %v, %v
  %3 = contract %1, %2 {spec="av,vd->ad"}
  output "y" %3
})");
  CHECK(text(pad_products(attention)) == text(attention));
}
