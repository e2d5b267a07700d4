#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// The minimum bytes that each launch reports.
using namespace lathe;

namespace {

/// Returns a graph's launches as "name bytes", in order.
std::string launches(const std::string& text, int vector_bits = 512) {
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "traffic.lathe"), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, lathe::test::cpu_with(vector_bits));
  std::string found;
  for (const Launch& launch : program.launches)
    found += program.kernels[static_cast<std::size_t>(launch.kernel)].name.substr(3) + ": " +
             launch.bytes.to_string() + "\n";
  return found;
}

}  // namespace

TEST_CASE("a broadcast operand is counted once per launch") {
  CHECK(launches(R"(graph @g(input %x: f32[B, d=8], input %b: f32[d=8]) {
    %1 = add %x, %b
    output "y" %1
  })") == "rows: 64*B + 32\n");
}

TEST_CASE("a value with several loads is counted once, an in-place update twice") {
  CHECK(launches(R"(graph @g(input %x: f32[n]) {
    %1 = mul %x, %x
    %2 = add %1, %x
    output "y" %2
  })") == "rows: 8*n\n");
  CHECK(launches(R"(graph @g(state %s: f64[n]) {
    %1 = mul %s, %s
    update %s <- %1
  })") == "rows: 16*n\n");
}

TEST_CASE("a slice counts its elements, a gather one row per index") {
  CHECK(launches(R"(graph @g(input %x: f32[n, d=12]) {
    %1 = slice %x {dim=1, start=4, stop=8}
    %2 = exp %1
    output "y" %2
  })") == "rows: 32*n\n");
  CHECK(launches(R"(graph @g(input %table: f32[rows=1000, d=8], input %at: i64[n]) {
    %1 = gather %table, %at {dim=0}
    output "y" %1
  })") == "rows: 72*n\n");
}

TEST_CASE("overlapping reads of a buffer count at most the buffer") {
  CHECK(launches(R"(graph @g(input %x: f32[n], input %y: f32[m]) {
    %1 = concat %x, %y {dim=0}
    %2 = exp %1
    output "z" %2
  })") == "rows: 8*m + 8*n\n");
}

TEST_CASE("packing and matmuls count their operands") {
  const std::string found = launches(R"(graph @g(input %a: f32[m=256, k=512], input %b: f32[k=512, n=384]) {
    %1 = matmul %a, %b
    output "c" %1
  })");
  CHECK_THAT(found, Catch::Matchers::Contains("product: " + std::to_string((256 * 512 + 512 * 384 + 256 * 384) * 4)));
}
