#include <catch2/catch.hpp>

#include <set>
#include <string>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// Tests which row kernels prefetch a later row, and which matmuls prefetch their operands.
using namespace lathe;

namespace {

/// Returns the number of buffers that the kernels prefetch.
std::size_t prefetched(std::string_view text, const CpuInfo& target = unnamed_cpu()) {
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "prefetch.lathe"), ir::default_pipeline()).graph;
  std::size_t count = 0;
  for (const kernel::Kernel& code : lower_cpu(graph, target).kernels) {
    const std::string printed = kernel::print(code), word = "prefetch ";
    std::set<std::string> buffers;
    for (auto at = printed.find(word); at != std::string::npos; at = printed.find(word, at + 1))
      buffers.insert(printed.substr(at + word.size(), printed.find('[', at) - at - word.size()));
    count += buffers.size();
  }
  return count;
}

bool prefetches(std::string_view text) { return prefetched(text) > 0; }

/// The same for a matmul left * y.
std::size_t product_prefetches(const std::string& x, const std::string& lines, const std::string& left) {
  return prefetched("graph @g(input %x: f32" + x + ", input %y: f32[t, 768]) {\n" + lines + "  %z = matmul " + left +
                    ", %y\n  output \"z\" %z\n}");
}

bool softmax_prefetches(const std::string& shape) {
  return prefetches("graph @g(input %x: f32" + shape + ") {\n  %1 = softmax %x {dim=-1}\n  output \"y\" %1\n}");
}

}  // namespace

TEST_CASE("rows of one tensor are prefetched, and gathered rows", "[lowering]") {
  CHECK(softmax_prefetches("[n, 1024]"));
  CHECK(softmax_prefetches("[2, n, 768]"));
  CHECK(prefetches(R"(graph @g(input %x: f32[n, 768], input %w: f32[768]) {
  %1 = rms_norm %x, %w
  output "y" %1
})"));
  CHECK(prefetches(R"(graph @g(input %i: i64[n], input %table: f32[5000, 768]) {
  %1 = gather %table, %i {dim=0}
  output "y" %1
})"));
}

TEST_CASE("with a slow last-level cache, sequential reads of one loop are prefetched too", "[lowering]") {
  const CpuInfo slow = lathe::test::cpu_with(512, {.slow_last_level = true});
  const auto squares = [](const std::string& shape) {
    return "graph @g(input %x: f32" + shape + ", input %w: f32[1024]) {\n  %1 = mul %x, %x\n  %2 = mul %1, %w\n" +
           "  output \"y\" %2\n}";
  };
  CHECK(prefetched("graph @g(input %x: f32[n, 1024]) {\n  %1 = exp %x\n  output \"y\" %1\n}", slow) == 1);
  CHECK(prefetched(squares("[1024, 1024]"), slow) == 1);  // not weights that all rows read
  CHECK(prefetched(squares("[n, 1024]"), slow) == 1);
  CHECK(prefetched(squares("[1023, 1024]"), slow) == 0);  // may be in L2
  const std::string two_tensors = R"(graph @g(input %y: f32[n, 1024], input %dy: f32[n, 1024]) {
  %1 = mul %y, %dy
  %2 = sum %1 {dims=[1], keepdim=true}
  %3 = sub %dy, %2
  %4 = mul %y, %3
  output "dx" %4
})";
  CHECK(prefetched(two_tensors, slow) == 2);
  CHECK(prefetched(two_tensors) == 0);
}

TEST_CASE("a matmul prefetches a left operand read along its rows, and its result", "[lowering]") {
  const std::string transposed = "  %1 = transpose %x {dim0=0, dim1=1}\n";
  CHECK(product_prefetches("[t, 512]", transposed, "%1") == 2);
  CHECK(product_prefetches("[512, t]", "", "%x") == 1);  // read along k
  CHECK(product_prefetches("[t, 512]", transposed + "  %2 = exp %1\n", "%2") == 1);
  CHECK(product_prefetches("[t, 8192]", transposed, "%1") == 1);  // packed in tasks
}

TEST_CASE("a matmul with one row prefetches the weights it streams, including quantized ones", "[lowering]") {
  const auto row_by = [](const std::string& weights, const std::string& w) {
    return prefetched("graph @g(input %x: f32[1, 768], " + weights + "  %y = linear %x, " + w +
                      "\n  output \"y\" %y\n}");
  };
  CHECK(row_by("input %w: f32[2048, 768]) {\n", "%w") == 1);
  CHECK(row_by("input %w: f32[64, 768]) {\n", "%w") == 0);  // in L2
  CHECK(row_by("input %q: i8[4096, 768], input %s: f32[4096, 12]) {\n  %w = dequantize %q, %s\n", "%w") == 1);
}

TEST_CASE("rows that are short, longer than a cache, single, of unknown length or of two tensors are not prefetched",
          "[lowering]") {
  CHECK_FALSE(softmax_prefetches("[n, 64]"));
  CHECK_FALSE(softmax_prefetches("[n, 1048576]"));
  CHECK_FALSE(softmax_prefetches("[1024]"));
  CHECK_FALSE(softmax_prefetches("[n, m]"));
  CHECK_FALSE(prefetches(R"(graph @g(input %x: f32[n, 1024]) {
  %1 = exp %x
  output "y" %1
})"));
  CHECK_FALSE(prefetches(R"(graph @g(input %y: f32[n, 1024], input %dy: f32[n, 1024]) {
  %1 = mul %y, %dy
  %2 = sum %1 {dims=[1], keepdim=true}
  %3 = sub %dy, %2
  %4 = mul %y, %3
  output "dx" %4
})"));
}
