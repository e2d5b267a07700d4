#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"

namespace lathe::kernel {

inline constexpr int async_copy_bytes = 16;

/// Starts a copy of 16 bytes: to[to_index + i] = from[from_index + i], and 0 at and beyond the first `count` elements
/// where one is given; of `from` only these are touched. It ends at the thread's wait for it: until then what is in
/// `to` there is undefined. `to` is shared memory, `from` a parameter that is only read; both indices are multiples
/// of 16 bytes.
struct AsyncCopy {
  BufferId to = none, from = none;
  ValueId to_index = none, from_index = none, count = none;

  static AsyncCopy of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord async_copy_record;

/// The copies that the thread has started since its last commit become a group.
struct CommitCopies {
  static CommitCopies of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord commit_copies_record;

/// The thread waits until at most `pending` of its groups, the latest, are under way. Other threads see what was
/// copied after a barrier.
struct WaitCopies {
  int pending = 0;

  static WaitCopies of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord wait_copies_record;

/// Starts a copy of 16 bytes to shared memory, zeros beyond `count` elements.
void async_copy(Builder& builder, Buffer to, Builder::Bound to_index, Buffer from, Builder::Bound from_index,
                Value count = {});
void commit_copies(Builder& builder);
void wait_copies(Builder& builder, int pending);

}  // namespace lathe::kernel
