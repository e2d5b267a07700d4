#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/check_collective.h"
#include "tests/ranks/support.h"
#include "tests/support/kernels/kernel_store.h"

/// Compiled collectives, compared with the simulator.
namespace lathe::test {

TEST_CASE("ranks: compiled collectives match the simulator") {
  for (const CollectiveCase& collective : collective_cases()) check_collective(collective);
}

namespace {

/// Returns the number of communication steps of a graph on two ranks, with buckets of `bucket_bytes`.
std::size_t collectives_of(const std::string& text, std::int64_t bucket_bytes) {
  const ir::Graph graph = ir::parse_graph(text, "buckets");
  std::size_t count = 0;
  run_ranks(2, [&](int rank, const MakeCommunicator& make) {
    CompileOptions options{
        .threads = 1, .cache = shared_kernels(), .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
    options.lower.bucket_bytes = bucket_bytes;
    const Executable executable = compile(graph, options);
    if (rank == 0) count = program_of(executable).collectives.size();
  });
  return count;
}

/// Returns a graph of collectives of one kind on vectors with these numbers of elements, whose results are outputs.
std::string collectives_of(const std::string& op, const std::string& attributes, const std::vector<int>& elements) {
  std::string arguments, made, exchanged, outputs;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string number = std::to_string(i), first = std::to_string(2 * i + 1), then = std::to_string(2 * i + 2);
    arguments += (i > 0 ? ", input %x" : "input %x") + number + ": f32[" + std::to_string(elements[i]) + "]";
    made += "  %" + first + " = exp %x" + number + "\n  %" + then + " = " + op + " %" + first +
            " {axis=\"m\", ranks=2, " + attributes + "}\n";
    outputs += "  output \"y" + number + "\" %" + then + "\n";
  }
  return "graph @g(" + arguments + ") {\n" + made + outputs + "}";
}

}  // namespace

TEST_CASE("ranks: sums of one kind, and gathers without users, are bucketed up to the bucket size") {
  const std::string sums = collectives_of("all_reduce", "combine=\"sum\"", {8, 8}),
                    gathers = collectives_of("all_gather", "dim=0, outer=1", {4, 4});
  for (const std::string& text : {sums, gathers}) {
    CAPTURE(text);
    CHECK(collectives_of(text, 0) == 2);
    CHECK(collectives_of(text, 63) == 2);
    CHECK(collectives_of(text, 64) == 1);
  }
  // Scatters in flight may be as large as the largest one, which here is too large for the bucket.
  const std::string scatters = collectives_of("reduce_scatter", "dim=0, outer=1", {8, 8, 64});
  CHECK(collectives_of(scatters, 63) == 3);
  CHECK(collectives_of(scatters, 64) == 2);
  // A value that a launch reads is not delayed for others.
  std::string read = gathers;
  read.replace(read.find("  output"), 0, "  %5 = exp %2\n  output \"z\" %5\n");
  CHECK(collectives_of(read, 64) == 2);
}

}  // namespace lathe::test
