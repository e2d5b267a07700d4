#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

/// Values that are written with non-temporal stores.
using namespace lathe;

namespace {

/// Whether a kernel of the graph streams, and the number of thread-private buffers.
struct Streams {
  bool any = false;
  int scratch = 0;
  bool operator==(const Streams&) const = default;
};

Streams streams(std::string_view text) {
  const ir::Graph graph = ir::run_pipeline(ir::parse_graph(text, "streams.lathe"), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, unnamed_cpu());
  Streams found;
  for (const kernel::Kernel& code : program.kernels)
    found.any = found.any || kernel::print(code).find("stream ") != std::string::npos;
  for (const ProgramBuffer& buffer : program.buffers) found.scratch += buffer.kind == ProgramBuffer::Kind::scratch;
  return found;
}

std::string softmax(const std::string& shape) {
  return "graph @g(input %x: f32" + shape + ") {\n  %1 = softmax %x {dim=-1}\n  output \"y\" %1\n}";
}

}  // namespace

TEST_CASE("results larger than the caches are streamed, and values that would spill there use scratch") {
  CHECK(streams(softmax("[16384, 1024]")) == Streams{true, 1});
  CHECK(streams(R"(graph @g(input %x: f32[16384, 1024]) {
  %1 = exp %x
  output "y" %1
})") == Streams{true, 0});
  CHECK(streams(R"(graph @g(input %i: i64[8], input %u: f32[8, 768]) {
  %1 = scatter_add %i, %u {size=50257, dim=0}
  output "y" %1
})") == Streams{true, 0});
}

TEST_CASE("results that fit the caches, of unknown size, or updated in place are not streamed") {
  CHECK(streams(softmax("[1024, 1024]")) == Streams{});
  CHECK(streams(softmax("[n, 1024]")) == Streams{});
  CHECK(streams(R"(graph @g(state %s: f32[16384, 1024]) {
  %1 = exp %s
  update %s <- %1
})") == Streams{});
}
