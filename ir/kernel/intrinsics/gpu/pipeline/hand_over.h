#pragma once

#include <functional>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/region.h"

/// Overlaps the work on a pipeline's results with its next products.
namespace lathe::kernel {

/// In a pipeline, `give` is run by the consumers, which store to shared memory, and `finish` by the last `threads`
/// threads of the block, which read it. `number` is the warpgroup of the consumers that gives. The last threads run
/// `finish` once for each of the consumers' warpgroups, in order. If the last threads are n warpgroups, warpgroup i
/// finishes for the consumers' warpgroups i, i + n, ... The consumers continue after `give`; before their next `give`
/// they wait until the previous one is finished.
struct HandOver {
  static constexpr std::size_t giving = 0, finishing = 1;  ///< its bodies

  int threads = 0;
  ValueId number = none;
  const Block &give, &finish;

  static HandOver of(const IntrinsicRegion& region);
  /// Requires an enclosing pipeline, outside its stage, and no branch (hand_over_context).
  void verify_place(const IntrinsicRegionRules& rules) const;
  /// Checks that `give` stores only to shared memory and `finish` only to parameters, that neither involves other
  /// threads, and that `finish` uses no variable of the consumers (hand_over_bodies).
  void verify_bodies(const IntrinsicRegionRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static IntrinsicRegion parse(IntrinsicReader& in);
  int last_threads() const { return threads; }
  Range index_range(const Kernel& kernel) const;
  void interpret(IntrinsicRun& run, std::span<Thread* const> all) const;
};
extern const IntrinsicRegionRecord hand_over_record;

/// Emits a hand-over to `threads` other threads. Both bodies receive the number of the warpgroup that gives.
void hand_over(Builder& b, int threads, const Builder::Body& give, const Builder::Body& finish);

}  // namespace lathe::kernel
