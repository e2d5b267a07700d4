#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/build/builder.h"
#include "passes/program/program.h"

namespace lathe {

/// A kernel under construction, with the program buffers and dims it is bound to. Unknown dims become run-time
/// arguments, known ones constants.
class KernelContext {
 public:
  KernelContext(std::string name, KernelRole role) : builder(std::move(name)), role_(role) {}

  kernel::Builder builder;

  /// The kernel's parameter for a program buffer. All buffers are declared before the body is built.
  void declare(int buffer, DType dtype, bool reads, bool writes);
  kernel::Buffer buffer(int id) const { return parameters_.at(id); }

  /// The value of a size: a constant, or one run-time argument for the whole polynomial.
  kernel::Value dim(const Dim& size);

  /// A number that is passed at run time all the same, so that kernels that differ in it alone are one.
  kernel::Value argument(const Dim& number) { return run_time(number); }

  /// Registers a run-time check; gives its code.
  std::int64_t check_code(std::string message);

  /// Says how many elements of some buffers the kernel reads and writes; of the others it is all of them.
  void touches(const std::map<int, Dim>& elements) { touched_.insert(elements.begin(), elements.end()); }

  /// Says that the kernel writes a part of a buffer and leaves the rest as it was.
  void writes_part_of(int buffer) { in_part_.insert(buffer); }

  /// What multiplies in it, and which faster ways were not taken.
  void multiplies_by(Multiplier multiplier, std::vector<MissedPath> missed = {}) {
    multiplier_ = multiplier, missed_ = std::move(missed);
  }

  /// The kernel and the launch that runs it.
  struct Built {
    kernel::Kernel kernel;
    Launch launch;
    std::map<int, Dim> touched;                ///< elements by buffer, see launch_bytes
    std::vector<std::string> candidates = {};  ///< of a product that is tuned, see LoweringContext::tuning
  };
  Built finish();

 private:
  kernel::Value run_time(const Dim& value);

  KernelRole role_;
  Multiplier multiplier_ = Multiplier::none;
  std::vector<MissedPath> missed_;
  std::map<int, kernel::Buffer> parameters_;
  std::vector<int> order_;
  std::vector<Dim> dims_;
  std::vector<std::string> checks_;
  std::map<int, Dim> touched_;
  std::set<int> in_part_;
};

}  // namespace lathe
