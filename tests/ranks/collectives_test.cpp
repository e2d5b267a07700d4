#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/lowering/program.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/check_collective.h"
#include "tests/ranks/support.h"

/// Each collective, compiled, against the simulator.
namespace lathe::test {

TEST_CASE("ranks: compiled collectives exchange what the simulator does") {
  for (const CollectiveCase& collective : collective_cases()) check_collective(collective);
}

namespace {

/// How many exchanges two ranks have of a graph, with buckets of so many bytes.
std::size_t exchanges_of(const std::string& text, std::int64_t bucket_bytes) {
  const ir::Graph graph = ir::parse_graph(text, "buckets");
  std::size_t count = 0;
  run_ranks(2, [&](int rank, const MakeCommunicator& make) {
    CompileOptions options{.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
    options.lower.bucket_bytes = bucket_bytes;
    const Executable executable = compile(graph, options);
    if (rank == 0) count = executable.program().exchanges.size();
  });
  return count;
}

/// Two collectives of one kind, of 32 bytes of a whole each, whose results are outputs.
std::string two_collectives(const std::string& op, const std::string& attributes, int elements) {
  std::string text = "graph @g(input %x: f32[" + std::to_string(elements) + "], input %y: f32[" +
                     std::to_string(elements) + "]) {\n  %1 = exp %x\n  %3 = exp %y\n";
  for (const auto& [result, from] : {std::pair{"%2", "%1"}, std::pair{"%4", "%3"}})
    text += std::string("  ") + result + " = " + op + " " + from + " {axis=\"m\", ranks=2, " + attributes + "}\n";
  return text + "  output \"a\" %2\n  output \"b\" %4\n}";
}

}  // namespace

TEST_CASE("ranks: sums of one kind, and gathers that no launch reads, go together up to the size of a bucket") {
  const std::string sums = two_collectives("all_reduce", "combine=\"sum\"", 8),
                    scatters = two_collectives("reduce_scatter", "dim=0, outer=1", 8),
                    gathers = two_collectives("all_gather", "dim=0, outer=1", 4);
  for (const std::string& text : {sums, scatters, gathers}) {
    CAPTURE(text);
    CHECK(exchanges_of(text, 0) == 2);
    CHECK(exchanges_of(text, 63) == 2);
    CHECK(exchanges_of(text, 64) == 1);
  }
  // What a launch reads is not kept back for others.
  std::string read = gathers;
  read.replace(read.find("  output"), 0, "  %5 = exp %2\n  output \"c\" %5\n");
  CHECK(exchanges_of(read, 64) == 2);
}

}  // namespace lathe::test
