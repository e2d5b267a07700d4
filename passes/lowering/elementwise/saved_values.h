#pragma once

#include <functional>
#include <map>
#include <span>

#include "passes/lowering/elementwise/row_loops.h"

namespace lathe {

/// Values that loops over a row share. Values that do not vary along the row are computed once, and spilled values
/// are reloaded instead of recomputed.
class SavedValues {
 public:
  /// Loads a value from its spill, at the scope's element of the row.
  using Reload = std::function<kernel::Value(int value, const ElementwiseStore& spill)>;

  /// All arguments must outlive this object.
  SavedValues(const LoweringContext& lowering, const ElementwiseProgram& program, ElementwiseEmitter& emitter,
              const RowLoops& loops)
      : lowering_(lowering), program_(program), emitter_(emitter), loops_(loops) {}

  /// Emits, outside the loop over the row, the operands of the instruction that do not vary along the row.
  void hoist(int instruction, ElementwiseEmitter::Scope& row) const;
  /// Records that the spill now holds `value`. Any value that it held before is lost.
  void keep(int value, const ElementwiseStore* spill);
  /// Binds the operands of the instructions that are available in a spill.
  void bind(std::span<const int> instructions, ElementwiseEmitter::Scope& element, const Reload& reload) const;
  /// Forgets all spills; call it before each row.
  void clear() { spills_.clear(); }

 private:
  /// Visits each instruction once, in order, and then its arguments if `visit` returns true for it.
  void walk(std::span<const int> instructions, const std::function<bool(int)>& visit) const;

  const LoweringContext& lowering_;
  const ElementwiseProgram& program_;
  ElementwiseEmitter& emitter_;
  const RowLoops& loops_;
  std::map<int, const ElementwiseStore*> spills_;  ///< by value
};

}  // namespace lathe
