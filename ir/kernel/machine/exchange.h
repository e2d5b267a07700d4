#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"

/// What threads get from each other without memory.
namespace lathe::kernel {

/// A warp shuffle: `value` of thread `lane` of the warp.
struct FromLane {
  Type type{};
  ValueId value = none, lane = none;

  static FromLane of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  /// The threads stand by warps: thread.x is the innermost thread loop, or the only one.
  void interpret(const MachineRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const MachineRecord from_lane_record;

/// Of a pipeline: a condition that all consumers have alike, for the producers too.
struct FromConsumers {
  Type type{};
  ValueId value = none;

  static FromConsumers of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const MachineRecord from_consumers_record;

/// The scalar that thread `lane` of the warp has; all its threads ask.
Value from_lane(Builder& builder, Value value, Value lane);
/// In a pipeline, outside its stage: a bool that all consumers have alike, for the producers too.
Value from_consumers(Builder& builder, Value value);

}  // namespace lathe::kernel
