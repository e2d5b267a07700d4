#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// An update_rows in the form that schedules use: rows [pre.., t, post..] are written to [pre.., positions[t],
/// post..]. There is one position per row or one per element. The programs of rows and positions have the dims of the
/// rows as domain.
struct CacheAppendOperands {
  CacheAppendOperands(const LoweringContext& context, ir::ValueId value);

  /// Whether the old value is in a different buffer and must be copied first.
  bool copies() const;
  /// The program of the old value, over its own dims.
  OperandProgram old() const;

  const LoweringContext& lowering;
  ir::ValueId id;
  const ir::Node& node;
  int dim;                     ///< of the rows
  std::vector<int> pre, post;  ///< dims before and after `dim`
  OperandProgram rows, positions;
  bool each;        ///< positions have the shape of the rows
  Dim size, count;  ///< size of the updated value along `dim`; number of rows
};

}  // namespace lathe
