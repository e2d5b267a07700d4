#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/interpret/interpreter_thread.h"
#include "ir/kernel/interpret/lane_layout.h"

namespace lathe::kernel {

/// An intrinsic region whose body is running; it controls which threads run and checks their accesses.
class RunningRegion {
 public:
  virtual ~RunningRegion() = default;
  /// Returns those of `threads` that execute the statement.
  virtual std::span<Thread* const> runners(const Statement& s, std::span<Thread* const> threads) const = 0;
  /// Checks an access to an element of shared memory. Returns whether the access needs no barrier.
  virtual bool note_read(const Target& from, std::int64_t index, const Actor& actor) = 0;
  virtual bool note_write(const Target& to, std::int64_t index, const Actor& actor) = 0;
};

/// A running kernel of the interpreter, as seen by intrinsics and regions.
class IntrinsicRun {
 public:
  explicit IntrinsicRun(const Kernel& kernel) : kernel_(kernel), layout_(kernel) {}
  virtual ~IntrinsicRun() = default;

  const Kernel& kernel() const { return kernel_; }
  const Instruction& info(ValueId id) const { return kernel_.values[id]; }
  /// Returns the lanes of a thread's value.
  Scalar* lanes(ValueId id, Thread& t) const { return &t.lanes[layout_.value(id)]; }
  std::int64_t integer(ValueId id, Thread& t) const { return lanes(id, t)->integer; }
  std::vector<std::int64_t> integers(std::span<const ValueId> ids, Thread& t) const;
  /// Returns the lanes of a thread's variable.
  Scalar* var(VarId id, Thread& t) const { return &t.lanes[layout_.var(id)]; }

  virtual Target target(BufferId id, Thread& t) const = 0;
  virtual Actor actor(const Thread& t) const = 0;
  /// The active regions, outermost first.
  std::span<RunningRegion* const> regions() const { return regions_; }

  /// Called when all threads of the block have reached a barrier.
  virtual void barrier() = 0;
  /// Runs a body for one thread, or for several threads together, from barrier to barrier.
  virtual void run_alone(const Block& body, Thread& t) = 0;
  virtual void run_together(const Block& body, std::span<Thread* const> threads) = 0;
  /// Runs a whole kernel on buffers of this kernel, with its own dims. A check that fails sets this kernel's status
  /// word to `code` plus the check's own code.
  virtual void run_kernel(const Kernel& kernel, std::span<const Target> buffers, std::span<const std::int64_t> dims,
                          std::int64_t code) const = 0;
  /// Runs a body for several threads with `region` active.
  void run_inside(RunningRegion& region, const Block& body, std::span<Thread* const> threads);

  /// Throws [divergent_mma] unless the values are uniform over each group of `together` threads.
  void check_same(std::span<const ValueId> values, std::string_view op, int together,
                  std::span<Thread* const> threads) const;
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 protected:
  const LaneLayout& layout() const { return layout_; }

 private:
  const Kernel& kernel_;
  LaneLayout layout_;
  std::vector<RunningRegion*> regions_;
};

}  // namespace lathe::kernel
