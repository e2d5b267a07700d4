#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/cpu/cpu_context.h"
#include "passes/lowering/elementwise/row_loops.h"
#include "passes/lowering/elementwise/row_space.h"

namespace lathe::cpu {

/// Emits the prefetches of a rows region: in one of the loops over a row, those of a later row, or else those of
/// elements that follow in the same stream.
class RowPrefetch {
 public:
  using IndexGroups = std::vector<IndexGroup>;

  /// Chooses the load of a later row to prefetch, and the loop that does it: one for which `computes` is true. All
  /// arguments must outlive this object.
  RowPrefetch(KernelContext& context, const CpuContext& lowering, const ElementwiseProgram& program,
              ElementwiseEmitter& emitter, const RowSpace& space, const RowLoops& loops,
              const std::function<bool(const RowLoop&)>& computes);

  /// If the last-level cache is slow, prefetches the loop's reads `bytes` ahead, unless all of them may fit into L2.
  /// The hardware prefetcher follows a stream only up to the end of a page, and has few outstanding reads in a loop
  /// that computes much.
  void further(const IndexGroups& row, kernel::Value at, std::int64_t bytes);

  /// The prefetches of a loop over one row.
  class OfRow {
   public:
    OfRow(RowPrefetch& prefetch, const RowLoop& loop, kernel::Value row);
    void emit(kernel::Value at);

   private:
    RowPrefetch& p_;
    bool is_first_, is_later_;  ///< whether the loop is the first, and whether it prefetches a later row
    kernel::Value row_, later_row_;
    ElementwiseEmitter::Scope later_scope_;
  };

 private:
  void choose(const std::function<bool(const RowLoop&)>& computes);
  kernel::Value later(kernel::Value row);

  KernelContext& context_;
  const CpuContext& lowering_;
  const ElementwiseProgram& program_;
  ElementwiseEmitter& emitter_;
  const RowSpace& space_;
  const RowLoops& loops_;
  std::optional<int> prefetched_;  ///< the load or gather of a later row to prefetch
  const RowLoop* loop_ = nullptr;  ///< the loop that prefetches it
  std::int64_t rows_ = 1;          ///< how many rows later
};

}  // namespace lathe::cpu
