#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"

namespace lathe::kernel {

/// Starts a copy by TMA of the box of a tensor map that begins at the position `at`, to the rows of tiles in shared
/// memory (see swizzled_offset) from to_index on, a multiple of 1024 bytes. It stands in the producer of a stage; of
/// the producers the first one alone makes it, and the stage is consumed when it has arrived.
struct CopyBox {
  BufferId to = none;
  ValueId to_index = none;
  int map = none;
  std::vector<ValueId> at{};

  static CopyBox of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord copy_box_record;

/// Starts a copy of the box of a map that begins at `at` to tiles in shared memory, in the producer of a stage.
void copy_box(Builder& builder, Buffer to, Builder::Bound to_index, int map, const std::vector<Value>& at);

}  // namespace lathe::kernel
