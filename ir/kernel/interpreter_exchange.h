#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/interpreter_machine.h"

/// What the threads of a warp, a warpgroup or a pipeline get from each other.
namespace lathe::kernel {

/// Where a thread has its values.
class ThreadValues {
 public:
  explicit ThreadValues(const Kernel& kernel) : kernel_(kernel) {
    for (const Instruction& in : kernel.values)
      offsets_.push_back(count_), count_ += static_cast<std::size_t>(in.type.lanes);
  }
  std::size_t count() const { return count_; }
  const Instruction& info(ValueId id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  Scalar* lanes(ValueId id, Thread& t) const { return &t.values[offsets_[static_cast<std::size_t>(id)]]; }
  std::int64_t integer(ValueId id, Thread& t) const { return lanes(id, t)->integer; }
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 private:
  const Kernel& kernel_;
  std::vector<std::size_t> offsets_;
  std::size_t count_ = 0;
};

/// from_lane for all threads, which stand by warps: thread.x is the innermost thread loop, or the only one.
void exchange_lanes(const ThreadValues& values, ValueId value, std::span<Thread* const> threads);
/// from_consumers for all threads of a pipeline.
void tell_all(const ThreadValues& values, ValueId value, int consumers, std::span<Thread* const> threads);
/// Throws unless the threads of each `together` name the same places.
void check_same(const ThreadValues& values, std::span<const ValueId> places, std::string_view op, int together,
                std::span<Thread* const> threads);

}  // namespace lathe::kernel
