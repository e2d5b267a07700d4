#pragma once

#include <functional>
#include <map>
#include <span>

#include "passes/lowering/elementwise/row_loops.h"

namespace lathe {

/// What the loops over one row leave for those that follow: values that do not vary along it are computed once, and
/// values that lie in memory are read back instead of computed again.
class SavedValues {
 public:
  /// The value that a spill holds, at the scope's element of the row.
  using Reload = std::function<kernel::Value(int value, const ElementwiseStore& spill)>;

  /// All arguments outlive this.
  SavedValues(const LoweringContext& lowering, const ElementwiseProgram& program, ElementwiseEmitter& emitter,
              const RowLoops& loops)
      : lowering_(lowering), program_(program), emitter_(emitter), loops_(loops) {}

  /// Computes, outside the loop over the row, what the instruction needs and does not vary along it.
  void hoist(int instruction, ElementwiseEmitter::Scope& row) const;
  /// From here on the spill holds the value, and what lay there before is gone.
  void keep(int value, const ElementwiseStore* spill);
  /// Binds what the instructions need and lies in memory.
  void bind(std::span<const int> instructions, ElementwiseEmitter::Scope& element, const Reload& reload) const;
  /// Nothing lies in memory: another row begins.
  void clear() { spills_.clear(); }

 private:
  /// Visits instructions, and the args of those for which `visit` is true, each once, in the order of the args.
  void walk(std::span<const int> instructions, const std::function<bool(int)>& visit) const;

  const LoweringContext& lowering_;
  const ElementwiseProgram& program_;
  ElementwiseEmitter& emitter_;
  const RowLoops& loops_;
  std::map<int, const ElementwiseStore*> spills_;  ///< by value
};

}  // namespace lathe
