#include <catch2/catch.hpp>

#include "tests/cuda/ranks/mock_ranks.h"
#include "tests/ranks/check_collective.h"

/// Each collective between GPUs, compared with the simulator.
namespace lathe::test {

TEST_CASE("GPU ranks: collectives match the simulator bit for bit") {
  for (const auto order : {MockDriver::Order::late, MockDriver::Order::early}) {
    MockRanks gpus(3, order);
    for (const CollectiveCase& collective : collective_cases())
      check_collective(collective, [&](const auto& ranks) { return gpus.options(ranks); });
    CHECK(gpus.faults() == "");
    CHECK(gpus.control().gathers > 0);
    CHECK(gpus.control().messages > 0);
  }
}

}  // namespace lathe::test
