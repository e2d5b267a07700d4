#include "passes/transforms/dtypes/convert_dtype.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

TEST_CASE("convert_dtype: converts arguments, constants and casts, other dtypes are unchanged", "[convert_dtype]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 2], input %i: i64[n], parameter %c: c64[n]) {
  %1 = constant {dtype=f32, shape=[], values=[0.5]}
  %2 = mul %x, %1
  %3 = cast %2 {dtype=f64}
  %4 = cast %i {dtype=f32}
  %5 = unsqueeze %4 {dim=1}
  %6 = add %2, %5
  %7 = view_as_complex %6
  %8 = mul %7, %c
  output "a" %3
  output "b" %8
})");
  CHECK(text(convert_dtype(graph, f32, f64)) ==
        R"(graph @g(input %x: f64[n, 2], input %i: i64[n], parameter %c: c128[n]) {
  %1 = constant {dtype=f64, shape=[], values=[0.5]} : f64[]
  %2 = mul %x, %1 : f64[n, 2]
  %3 = cast %i {dtype=f64} : f64[n]
  %4 = unsqueeze %3 {dim=1} : f64[n, 1]
  %5 = add %2, %4 : f64[n, 2]
  %6 = view_as_complex %5 : c128[n]
  %7 = mul %6, %c : c128[n]
  output "a" %2
  output "b" %7
}
)");
}

TEST_CASE("convert_dtype: a model in f64 matches f32, with higher precision", "[convert_dtype]") {
  for (const Specimen& specimen : specimens()) {
    if (specimen.name == "complex") continue;
    INFO(specimen.name);
    const ir::Graph wide = parse(specimen.text), narrow = convert_dtype(wide, f64, f32);
    Tensors at_f64 = random_arguments(wide, specimen.dims), at_f32;
    for (auto& [name, tensor] : at_f64) {
      at_f32.emplace(name, tensor.dtype() == f64 ? tensor.cast(f32) : tensor);
      if (tensor.dtype() == f64) tensor = at_f32.at(name).cast(f64);
    }
    const HostTensor expected = interpret(wide, at_f64).at("loss"), found = interpret(narrow, at_f32).at("loss");
    CHECK(found.dtype() == f32);
    CHECK(found.get(0) == Approx(expected.get(0)).epsilon(1e-4));
  }
}

TEST_CASE("convert_dtype: errors", "[convert_dtype]") {
  const ir::Graph graph = parse("graph @g(input %x: c64[2]) {\n  output \"o\" %x\n}");
  CHECK_THAT(error_text([&] { convert_dtype(graph, f32, i64); }), Contains("[convert_dtype]"));
  CHECK_THAT(error_text([&] { convert_dtype(graph, f32, bf16); }), Contains("no complex dtype made of bf16"));
}
