#pragma once

#include <initializer_list>
#include <map>

#include "passes/lowering/region_kernels.h"
#include "passes/program/program.h"

namespace lathe {

/// How many elements of each program buffer the programs of one kernel load and store, together: what must move even
/// with a cache that holds everything in between. Elements that several loads read at the same form count once, and
/// never more are read than the buffer has; of a table that is gathered from, one element for each index; what is
/// summed row by row is read once.
std::map<int, Dim> touched_elements(const std::vector<const ElementwiseProgram*>& programs,
                                    const LoweringContext& lowering);

/// The bytes of one launch of a kernel: of its buffers what `touched` says, and where it says nothing all elements,
/// once for reading and once for writing.
Dim launch_bytes(const kernel::Kernel& kernel, const Launch& launch, const std::vector<ProgramBuffer>& buffers,
                 const std::map<int, Dim>& touched);

}  // namespace lathe
