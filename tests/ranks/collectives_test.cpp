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

TEST_CASE("ranks: exchanges of several all_reduces go together up to the size of a bucket") {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(input %x: f32[8], input %y: f32[8]) {
  %1 = exp %x
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  %3 = exp %y
  %4 = all_reduce %3 {axis="m", ranks=2, combine="sum"}
  output "a" %2
  output "b" %4
})",
                                          "buckets");
  for (const auto& [bytes, exchanges] : std::vector<std::pair<std::int64_t, std::size_t>>{{0, 2}, {63, 2}, {64, 1}})
    run_ranks(2, [&, bytes = bytes, exchanges = exchanges](int, const MakeCommunicator& make) {
      CompileOptions options{.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
      options.lower.bucket_bytes = bytes;
      const Executable executable = compile(graph, options);
      if (executable.program().exchanges.size() != exchanges) throw InternalError("another number of exchanges");
    });
}

}  // namespace lathe::test
