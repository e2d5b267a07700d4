#pragma once

#include <functional>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/region.h"

namespace lathe::kernel {

/// Warpgroups take turns to start matmuls, in their order: a warpgroup starts those of its n-th turn after the
/// previous warpgroup has started those of its n-th turn, and the first one after the last one has started those of
/// its turn before. The matmuls of one warpgroup then run while the other ones compute (the "pingpong" schedule of
/// Shah et al. 2024, "FlashAttention-3"). Turns change no value and order no memory accesses. One warpgroup alone
/// does not wait.
struct Turn {
  const Block& body;

  static Turn of(const IntrinsicRegion& region);
  /// Requires the consumers of a stage outside branches and other turns (turn_context).
  void verify_place(const IntrinsicRegionRules& rules) const;
  /// Checks that it only computes values and starts matmuls (turn_body): a warpgroup that waits for others in its
  /// turn waits forever.
  void verify_bodies(const IntrinsicRegionRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static IntrinsicRegion parse(IntrinsicReader& in);
  void interpret(IntrinsicRun& run, std::span<Thread* const> threads) const;
};
extern const IntrinsicRegionRecord turn_record;

/// Emits a turn of the consumers of a stage.
void turn(Builder& b, const std::function<void()>& body);

}  // namespace lathe::kernel
