#pragma once

#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// An update_rows as its schedules see it: rows [pre.., t, post..] go to [pre.., positions[t], post..], where a
/// position is one of a row, or one of each of its elements. The programs of rows and positions run over the dims of
/// the rows.
struct RowUpdateOperands {
  RowUpdateOperands(const LoweringContext& context, ir::ValueId value);

  /// Whether the old value lies elsewhere and is to be copied first.
  bool copies() const;
  /// The old value over its own dims.
  OperandProgram old() const;

  const LoweringContext& lowering;
  ir::ValueId id;
  const ir::Node& node;
  int dim;                     ///< of the rows
  std::vector<int> pre, post;  ///< dims before and behind it
  OperandProgram rows, positions;
  bool each;        ///< positions have the shape of the rows
  Dim size, count;  ///< of what is updated along `dim`; rows
};

}  // namespace lathe
