#pragma once

#include <optional>
#include <string>

#include "codegen/cuda/index/divisibility.h"
#include "codegen/cuda/intrinsics/hooks.h"

namespace lathe::cuda {

/// Returns loads and stores as calls of the functions in the prelude: whole vectors at a time where the address is
/// known to be aligned, and lane by lane otherwise.
class AccessText {
 public:
  /// The kernel must outlive this object.
  explicit AccessText(const kernel::Kernel& kernel) : kernel_(kernel), divisors_(known_divisors(kernel)) {}

  std::string load(const kernel::Instruction& in, const KernelText& text) const;
  /// The two parts of a load of awaited elements: one loads their words, and the other one waits until they have been
  /// written. `settled` is a format string, whose argument is the name of the words.
  struct Look {
    std::string words, settled;
  };
  /// Returns nothing if the elements are not adjacent, or without a mask not aligned, or all of them have one mask.
  std::optional<Look> look(const kernel::Instruction& in, const KernelText& text) const;
  /// `stored`: the text of the value.
  std::string store(const kernel::Store& s, const std::string& stored, const KernelText& text) const;

 private:
  bool is_aligned(kernel::BufferId buffer, kernel::ValueId index, int lanes, int promised) const;

  const kernel::Kernel& kernel_;
  kernel::Divisors divisors_;
};

}  // namespace lathe::cuda
