#include <catch2/catch.hpp>

#include <algorithm>

#include "ir/kernel/printer.h"
#include "ir/tensor/parser.h"
#include "passes/lowering/lower.h"
#include "passes/pipeline.h"

/// Which kernels of rows ask for the memory of a later row.
using namespace lathe;

namespace {

bool asks_ahead(std::string_view text) {
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "ahead.lathe"), ir::default_pipeline()).graph;
  const Program program = lower(graph, {512});
  return std::any_of(program.kernels.begin(), program.kernels.end(), [](const kernel::Kernel& code) {
    return kernel::print(code).find("prefetch ") != std::string::npos;
  });
}

bool softmax_asks(const std::string& shape) {
  return asks_ahead("graph @g(input %x: f32" + shape + ") {\n  %1 = softmax %x {dim=-1}\n  output \"y\" %1\n}");
}

}  // namespace

TEST_CASE("rows of one tensor are asked for ahead, and rows that are looked up", "[lowering]") {
  CHECK(softmax_asks("[n, 1024]"));
  CHECK(softmax_asks("[2, n, 768]"));
  CHECK(asks_ahead(R"(graph @g(input %x: f32[n, 768], input %w: f32[768]) {
  %1 = rms_norm %x, %w
  output "y" %1
})"));
  CHECK(asks_ahead(R"(graph @g(input %i: i64[n], input %table: f32[5000, 768]) {
  %1 = gather %table, %i {dim=0}
  output "y" %1
})"));
}

TEST_CASE("rows that are short, longer than a cache, alone, of unknown length or of two tensors are not",
          "[lowering]") {
  CHECK_FALSE(softmax_asks("[n, 64]"));
  CHECK_FALSE(softmax_asks("[n, 1048576]"));
  CHECK_FALSE(softmax_asks("[1024]"));
  CHECK_FALSE(softmax_asks("[n, m]"));
  CHECK_FALSE(asks_ahead(R"(graph @g(input %x: f32[n, 1024]) {
  %1 = exp %x
  output "y" %1
})"));
  CHECK_FALSE(asks_ahead(R"(graph @g(input %y: f32[n, 1024], input %dy: f32[n, 1024]) {
  %1 = mul %y, %dy
  %2 = sum %1 {dims=[1], keepdim=true}
  %3 = sub %dy, %2
  %4 = mul %y, %3
  output "dx" %4
})"));
}
