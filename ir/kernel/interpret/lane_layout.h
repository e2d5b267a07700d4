#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// The positions of values and variables in the memory of a thread (Thread::lanes). Each has adjacent lanes;
/// variables follow the values.
class LaneLayout {
 public:
  explicit LaneLayout(const Kernel& kernel) {
    for (const Instruction& in : kernel.values) values_.push_back(add(in.type));
    for (const VarInfo& var : kernel.vars) vars_.push_back(add(var.type));
  }

  std::uint32_t value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::uint32_t var(VarId id) const { return vars_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return size_; }

 private:
  std::uint32_t add(Type type) {
    const std::uint32_t first = size_;
    size_ += static_cast<std::uint32_t>(type.lanes);
    return first;
  }

  std::vector<std::uint32_t> values_, vars_;
  std::uint32_t size_ = 0;
};

}  // namespace lathe::kernel
