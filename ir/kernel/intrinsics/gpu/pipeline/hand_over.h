#pragma once

#include <functional>
#include <optional>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/region.h"

/// Overlaps the work on a pipeline's results with its next products.
namespace lathe::kernel {

/// In a pipeline, `give` is run by the consumers, which store to shared memory, and `finish` by the last `threads`
/// threads of the block, which read it. `number` is the warpgroup of the consumers that gives. The last threads run
/// `finish` once for each of the consumers' warpgroups, in order. If the last threads are n warpgroups, warpgroup i
/// finishes for the consumers' warpgroups i, i + n, ... The consumers continue after `give`; before their next `give`
/// they wait until the previous one is finished.
///
/// If the consumers give together, one warpgroup runs `finish` once for all of them, and `number` is 0.
struct HandOver {
  static constexpr std::size_t giving = 0, finishing = 1;  ///< its bodies

  int threads = 0;
  bool together = false;
  int registers = 0;  ///< for each of the last threads, at most; 0: those that the consumers leave
  ValueId number = none;
  const Block &give, &finish;

  static HandOver of(const IntrinsicRegion& region);
  /// Requires an enclosing pipeline, outside its stage, and no branch (hand_over_context).
  void verify_place(const IntrinsicRegionRules& rules) const;
  /// Checks that `give` stores only to shared memory and `finish` only to other memory, that neither involves other
  /// threads, except operations of the finishing warpgroup, and that `finish` uses no variable of the consumers
  /// (hand_over_bodies).
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
/// Emits a hand-over of all consumers together to one warpgroup, whose threads have this many registers.
void hand_over_together(Builder& b, int registers, const std::function<void()>& give,
                        const std::function<void()>& finish);
/// Returns the hand-over in these statements, if there is one.
std::optional<HandOver> hand_over_in(const Block& statements);

}  // namespace lathe::kernel
