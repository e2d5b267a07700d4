#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/build/builder.h"
#include "passes/program/program.h"

namespace lathe {

/// A kernel under construction, with the program buffers and dims that it is bound to. Unknown dims become run-time
/// arguments, known dims become constants.
class KernelContext {
 public:
  KernelContext(std::string name, KernelRole role) : builder(std::move(name)), role_(role) {}

  kernel::Builder builder;

  /// Adds the kernel parameter for a program buffer. Declare all buffers before building the body.
  void declare(int buffer, DType dtype, bool reads, bool writes);
  kernel::Buffer buffer(int id) const { return parameters_.at(id); }

  /// Returns the value of a size: a constant, or one run-time argument for the whole polynomial.
  kernel::Value dim(const Dim& size);

  /// Passes a known number as a run-time argument, so that kernels that differ only in this number are shared.
  kernel::Value argument(const Dim& number) { return run_time(number); }

  /// Registers a run-time check and returns its code.
  std::int64_t check_code(std::string message);

  /// Sets how many elements of some buffers the kernel reads and writes; the default is all elements.
  void touches(const std::map<int, Dim>& elements) { touched_.insert(elements.begin(), elements.end()); }

  /// Sets which elements of some buffers the kernel reads; parameters are set by finish().
  void reads_rows(const std::map<int, RowsRead>& rows) { rows_read_.insert(rows.begin(), rows.end()); }

  /// Marks a buffer that the kernel writes only partially, preserving the rest.
  void writes_part_of(int buffer) { in_part_.insert(buffer); }

  /// Sets the multiplier that the kernel uses, and the faster paths that were not taken.
  void multiplies_by(Multiplier multiplier, std::vector<MissedPath> missed = {}) {
    multiplier_ = multiplier, missed_ = std::move(missed);
  }

  /// The kernel and the launch that runs it.
  struct Built {
    kernel::Kernel kernel;  ///< empty if `kernel_from` is set
    Launch launch;
    std::map<int, Dim> touched;                ///< number of elements by buffer, see launch_bytes
    std::vector<std::string> candidates = {};  ///< tuning candidates of a matmul, see LoweringContext::tuning
    /// If positive, the launch runs the kernel of the entry this many places before it in the schedule's list.
    int kernel_from = 0;
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
  std::map<int, RowsRead> rows_read_;
  std::set<int> in_part_;
};

}  // namespace lathe
