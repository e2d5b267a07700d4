#pragma once

#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// The values, variables and buffers that a statement may use. Definitions leave scope at the end of their block, so
/// that they dominate their uses. Throws InternalError for uses and definitions that break a rule.
class Definitions {
 public:
  /// Parameters, constants and dims are in scope everywhere. The kernel must outlive this object.
  explicit Definitions(const Kernel& kernel);

  /// The number of definitions at the start of a block.
  struct Mark {
    std::size_t values, vars, buffers;
  };
  Mark mark() const { return {values_.size(), vars_.size(), buffers_.size()}; }
  /// Removes all definitions after the mark, at the end of the block.
  void forget(const Mark& mark);

  void define(ValueId id);
  /// Removes the value that was defined last: the index of a loop.
  void forget_last();
  /// Returns the type of a value that is used.
  Type use(ValueId id) const;

  /// Declares a variable inside this number of loops with independent iterations.
  void declare(VarId id, int independent_loops);
  void require_var(VarId id) const;
  /// Requires that the same iterations declare a variable and set it.
  void require_own_iteration(VarId id, int independent_loops) const;

  const BufferInfo& allocate(BufferId id);
  /// Returns a buffer that is loaded from, or stored to if `writes`.
  const BufferInfo& buffer(BufferId id, bool writes) const;

 private:
  const Kernel& kernel_;
  std::vector<bool> defined_, declared_, allocated_;
  std::vector<int> values_, vars_, buffers_;  ///< defined in blocks, in order
  std::vector<int> var_depth_;                ///< by variable: the independent loops around its declaration
};

}  // namespace lathe::kernel
