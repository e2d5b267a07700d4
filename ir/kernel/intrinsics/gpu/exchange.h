#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"

/// Exchanges between threads that do not use memory.
namespace lathe::kernel {

/// A warp shuffle: `value` of thread `lane` of the warp.
struct FromLane {
  Type type{};
  ValueId value = none, lane = none;

  static FromLane of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static FromLane parse(IntrinsicReader& in);
  /// Requires threads in warp order: thread.x is the innermost thread loop, or the only one.
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord from_lane_record;

/// Passes a condition that is uniform over a pipeline's consumers to its producers.
struct FromConsumers {
  Type type{};
  ValueId value = none;

  static FromConsumers of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static FromConsumers parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord from_consumers_record;

/// Returns the scalar of thread `lane` of the warp; all threads of the warp call it.
Value from_lane(Builder& builder, Value value, Value lane);
/// Returns a bool that is uniform over all consumers, for the producers too. Used in a pipeline, outside its stage.
Value from_consumers(Builder& builder, Value value);

}  // namespace lathe::kernel
