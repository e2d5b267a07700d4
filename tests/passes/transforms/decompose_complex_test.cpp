#include "passes/transforms/dtypes/decompose_complex.h"

#include <catch2/catch.hpp>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

TEST_CASE("decompose_complex: rotary embedding by complex multiplication", "[decompose_complex]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[b, s, 4], input %freqs: c64[s, 2]) {
  %1 = view %x {shape=[b, s, 2, 2]}
  %2 = view_as_complex %1
  %3 = mul %2, %freqs
  %4 = view_as_real %3
  %5 = view %4 {shape=[b, s, 4]}
  output "o" %5
})");
  CHECK(text(decompose_complex(graph)) == R"(graph @g(input %x: f32[b, s, 4], input %freqs: f32[s, 2, 2]) {
  %1 = view %x {shape=[b, s, 2, 2]} : f32[b, s, 2, 2]
  %2 = slice %1 {dim=3, start=0, stop=1} : f32[b, s, 2, 1] strided
  %3 = slice %1 {dim=3, start=1, stop=2} : f32[b, s, 2, 1] strided
  %4 = slice %freqs {dim=2, start=0, stop=1} : f32[s, 2, 1] strided
  %5 = slice %freqs {dim=2, start=1, stop=2} : f32[s, 2, 1] strided
  %6 = mul %2, %4 : f32[b, s, 2, 1]
  %7 = mul %3, %5 : f32[b, s, 2, 1]
  %8 = mul %2, %5 : f32[b, s, 2, 1]
  %9 = mul %3, %4 : f32[b, s, 2, 1]
  %10 = sub %6, %7 : f32[b, s, 2, 1]
  %11 = add %8, %9 : f32[b, s, 2, 1]
  %12 = iota {shape=[2], dim=0, dtype=i32} : i32[2]
  %13 = constant {dtype=i32, shape=[], values=[0.0]} : i32[]
  %14 = eq %12, %13 : bool[2]
  %15 = where %14, %10, %11 : f32[b, s, 2, 2]
  %16 = view %15 {shape=[b, s, 4]} : f32[b, s, 4]
  output "o" %16
}
)");
}

TEST_CASE("decompose_complex: a graph without complex values is unchanged", "[decompose_complex]") {
  for (const Specimen& specimen : specimens()) {
    if (specimen.name == "complex") continue;
    const ir::Graph graph = parse(specimen.text);
    CHECK(text(decompose_complex(graph)) == text(graph));
  }
}
