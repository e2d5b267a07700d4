#pragma once

#include "tests/ranks/collective_cases.h"
#include "tests/ranks/support.h"

namespace lathe::test {

/// Runs the collective on three ranks, in threads of this process, and compares with the simulator.
void check_collective(const CollectiveCase& collective, const MachineOf& machine = {});

}  // namespace lathe::test
