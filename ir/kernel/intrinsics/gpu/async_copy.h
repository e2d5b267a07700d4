#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

inline constexpr int async_copy_bytes = 16;

/// Starts a copy of 16 bytes: to[to_index + i] = from[from_index + i]. If `count` is given, only the first `count`
/// elements are read, and the rest of the destination is set to 0. The copy completes at the thread's wait for it;
/// until then the destination is undefined. `to` is shared memory, `from` a read-only parameter; both indices are
/// multiples of 16 bytes.
struct AsyncCopy {
  BufferId to = none, from = none;
  ValueId to_index = none, from_index = none, count = none;

  static AsyncCopy of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static AsyncCopy parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord async_copy_record;

/// Commits the copies that the thread has started since its last commit as a group.
struct CommitCopies {
  static CommitCopies of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static CommitCopies parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord commit_copies_record;

/// Waits until at most the latest `pending` groups of the thread are in flight. Other threads see the copied data
/// after a barrier.
struct WaitCopies {
  int pending = 0;

  static WaitCopies of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static WaitCopies parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord wait_copies_record;

/// Starts a copy of 16 bytes to shared memory, zero-filled beyond `count` elements.
void async_copy(Builder& builder, Buffer to, Builder::Bound to_index, Buffer from, Builder::Bound from_index,
                Value count = {});
void commit_copies(Builder& builder);
void wait_copies(Builder& builder, int pending);

}  // namespace lathe::kernel
