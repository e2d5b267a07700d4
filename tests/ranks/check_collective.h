#pragma once

#include "tests/ranks/collective_cases.h"
#include "tests/ranks/support.h"

namespace lathe::test {

/// Runs it on three processes, in threads of this one, and compares with the simulator.
void check_collective(const CollectiveCase& collective, const MachineOf& machine = {});

}  // namespace lathe::test
