#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/interpreter_thread.h"

namespace lathe::kernel {

/// A kernel that the interpreter runs, as machine operations see it.
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
  /// How many threads of the pipeline that runs are its consumers, the first ones; 0 outside a pipeline.
  virtual int consumers() const = 0;

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
};

}  // namespace lathe::kernel
