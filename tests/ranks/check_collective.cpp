#include "tests/ranks/check_collective.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "passes/shard/simulate.h"
#include "runtime/ranks/thread_communicator.h"

namespace lathe::test {

void check_collective(const CollectiveCase& collective, const MachineOf& machine) {
  CAPTURE(collective.op, name(collective.dtype));
  constexpr int ranks = 3;
  const shard::Mesh mesh({{"m", ranks}});
  std::vector<HostTensor> found(ranks);
  run_ranks(ranks, [&](int rank, const MakeCommunicator& make) {
    const auto processes = std::make_shared<Ranks>(make, mesh, RanksOptions{.timeout = 60});
    found[static_cast<std::size_t>(rank)] =
        run_collective(collective, processes, machine ? machine(processes) : CompileOptions{});
  });
  // The simulator takes all operands concatenated along the first dim.
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

}  // namespace lathe::test
