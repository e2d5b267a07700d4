#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/interpret/interpreter_thread.h"

namespace lathe::kernel {

/// A machine region while a body runs in which it has a say.
class RunningRegion {
 public:
  virtual ~RunningRegion() = default;
  /// Of the threads that come to a statement those that carry it out.
  virtual std::span<Thread* const> runners(const Statement& s, std::span<Thread* const> threads) const = 0;
  /// Looks at an access to an element of shared memory; whether no barrier is wanted for it.
  virtual bool note_read(const Target& from, std::int64_t index, const Actor& actor) = 0;
  virtual bool note_write(const Target& to, std::int64_t index, const Actor& actor) = 0;
};

/// A kernel that the interpreter runs, as machine operations and regions see it.
class MachineRun {
 public:
  explicit MachineRun(const Kernel& kernel);
  virtual ~MachineRun() = default;

  const Kernel& kernel() const { return kernel_; }
  const Instruction& info(ValueId id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  /// The lanes of a thread's value.
  Scalar* lanes(ValueId id, Thread& t) const { return &t.values[offsets_[static_cast<std::size_t>(id)]]; }
  std::int64_t integer(ValueId id, Thread& t) const { return lanes(id, t)->integer; }
  std::vector<std::int64_t> integers(std::span<const ValueId> ids, Thread& t) const;
  /// The lanes of a thread's variable.
  Scalar* var(VarId id, Thread& t) const { return &t.vars[var_offsets_[static_cast<std::size_t>(id)]]; }

  virtual Target target(BufferId id, Thread& t) const = 0;
  virtual Actor actor(const Thread& t) const = 0;
  /// Those that have a say in what runs, from the outside in.
  std::span<RunningRegion* const> regions() const { return regions_; }

  /// All threads of the block have met.
  virtual void barrier() = 0;
  /// Runs a body: for a thread alone, or for threads together, from barrier to barrier.
  virtual void run_alone(const Block& body, Thread& t) = 0;
  virtual void run_together(const Block& body, std::span<Thread* const> threads) = 0;
  /// The same, where the region has its say.
  void run_inside(RunningRegion& region, const Block& body, std::span<Thread* const> threads);

  /// Throws [divergent_mma] unless the threads of each `together` have the same values.
  void check_same(std::span<const ValueId> values, std::string_view op, int together,
                  std::span<Thread* const> threads) const;
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 protected:
  std::size_t value_lanes() const { return value_lanes_; }
  std::size_t var_lanes() const { return var_lanes_; }

 private:
  const Kernel& kernel_;
  std::vector<std::size_t> offsets_, var_offsets_;
  std::size_t value_lanes_ = 0, var_lanes_ = 0;
  std::vector<RunningRegion*> regions_;
};

}  // namespace lathe::kernel
