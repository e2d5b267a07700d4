#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

/// Starts a TMA copy of a box of a tensor map. The box begins at position `at`. The destination is rows of swizzled
/// tiles in shared memory (see swizzled_offset), starting at to_index, a multiple of 1024 bytes. Allowed only in the
/// producer of a stage. Only the first producer thread issues it, and the stage is consumed after the copy has
/// arrived.
struct CopyBox {
  BufferId to = none;
  ValueId to_index = none;
  int map = none;
  std::vector<ValueId> at{};

  static CopyBox of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static CopyBox parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord copy_box_record;

/// Starts a TMA copy of the box at `at` to tiles in shared memory, in the producer of a stage.
void copy_box(Builder& builder, Buffer to, Builder::Bound to_index, int map, const std::vector<Value>& at);

}  // namespace lathe::kernel
