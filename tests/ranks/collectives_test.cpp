#include <catch2/catch.hpp>
#include <cstring>

#include "ir/tensor/text/parser.h"
#include "passes/lowering/program.h"
#include "passes/shard/simulate.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/collective_cases.h"
#include "tests/ranks/support.h"

/// Each collective, compiled, against the simulator.
namespace lathe::test {

namespace {

/// Runs it on three processes and compares with the simulator, which is given all operands along the first dim.
void check_collective(const CollectiveCase& collective) {
  CAPTURE(collective.op, name(collective.dtype));
  constexpr int ranks = 3;
  const shard::Mesh mesh({{"m", ranks}});
  std::vector<HostTensor> found(ranks);
  run_ranks(ranks, [&](int rank, const MakeCommunicator& make) {
    found[static_cast<std::size_t>(rank)] =
        run_collective(collective, std::make_shared<Ranks>(make, mesh, RanksOptions{.patience = 60}));
  });
  std::vector<std::int64_t> all_sizes = collective.sizes;
  all_sizes[0] *= ranks;
  HostTensor all(collective.dtype, all_sizes);
  for (int r = 0; r < ranks; ++r) {
    const HostTensor own = operand_of(collective, r);
    std::memcpy(all.data() + static_cast<std::size_t>(r) * own.bytes(), own.data(), own.bytes());
  }
  const shard::Placement along_first{shard::SplitDim{0, Dim(1), Dim(collective.sizes[0])}};
  const shard::Sharded sharded{collective.graph, mesh, {{"x", along_first}}, {{"y", along_first}}, {}, {}};
  const HostTensor expected = shard::simulate(sharded, {{"x", all}}).at("y");
  const std::int64_t each = found[0].numel();
  REQUIRE(expected.numel() == each * ranks);
  for (int r = 0; r < ranks; ++r)
    for (std::int64_t i = 0; i < each; ++i)
      REQUIRE(found[static_cast<std::size_t>(r)].get(i) == expected.get(r * each + i));
}

}  // namespace

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
