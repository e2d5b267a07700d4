#pragma once

#include <initializer_list>
#include <map>

#include "passes/lowering/region_kernels.h"
#include "passes/program/program.h"

namespace lathe {

/// Returns, by program buffer, the number of elements that the programs of one kernel load and store together: the
/// minimum traffic with a perfect cache. Loads with the same form count once, and reads never exceed the size of the
/// buffer. A gather reads one element per index. A row_sum reads its input once.
std::map<int, Dim> touched_elements(const std::vector<const ElementwiseProgram*>& programs,
                                    const LoweringContext& lowering);

/// Returns, by program buffer, the elements of states, and of states with updated rows, that all loads of one form
/// read, if these are a part of the buffer, as rows at one distance: the rows in use of a cache. The parameters are
/// not set.
std::map<int, RowsRead> rows_read(const std::vector<const ElementwiseProgram*>& programs,
                                  const LoweringContext& lowering);

/// Returns the bytes that one launch of a kernel moves: `touched` elements per buffer, or the whole buffer if there
/// is no entry, counted once for reading and once for writing.
Dim launch_bytes(const kernel::Kernel& kernel, const Launch& launch, const std::vector<ProgramBuffer>& buffers,
                 const std::map<int, Dim>& touched);

}  // namespace lathe
