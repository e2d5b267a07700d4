#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/llvm/library/library_code.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"

namespace lathe {

/// The distinct kernels of a level.
class LibraryKernels {
 public:
  /// Returns the number of a kernel. Kernels with equal canonical text and options are one.
  int add(const kernel::Kernel& kernel, const std::string& options = "");
  /// Same for a kernel of a program, which must outlive this object: fast for a kernel that was added before.
  int add(const Program& program, int kernel, const std::string& options = "");
  const std::vector<kernel::Kernel>& all() const { return kernels_; }
  const std::string& options(std::size_t kernel) const { return options_[kernel]; }

 private:
  std::map<std::string, int> number_of_;  ///< by options and text
  std::map<std::tuple<const Program*, int, std::string>, int> number_in_;
  std::vector<kernel::Kernel> kernels_;
  std::vector<std::string> options_;
};

/// The least and the largest value of a size in all calls, or bounds of them.
struct SizeBounds {
  std::int64_t least = 0, most = 0;
};
/// Returns the bounds of a size whose dims are in [0, most]. Throws UserError [dim_overflow] if they do not fit 63
/// bits.
SizeBounds bounds_of(const Dim& size, const DimBindings& most);

/// The decisions of a backend about the code of its libraries.
class LibraryMachine {
 public:
  virtual ~LibraryMachine() = default;

  /// Returns the message of LibraryError::no_level.
  virtual std::string no_level_message(const std::string& prefix) const = 0;
  /// Returns the messages of the errors that only libraries of this backend have, in the order of LibraryError.
  virtual std::vector<std::string> own_messages() const = 0;
  /// Returns the alignment in bytes of the memory of tensors of a call. `element` is that of an element.
  virtual std::int64_t tensor_alignment(std::int64_t element) const { return element; }
  /// Whether constants of programs are stored with the embedded parameters, in Library::weights.
  virtual bool stores_constants() const { return false; }
  /// Whether each worker has scratch memory of its own; otherwise it is in the arena.
  virtual bool has_workers() const { return true; }
  /// Returns the launches that may run concurrently, in order, for a plan of the arena.
  virtual std::vector<codegen::LibraryGroup> groups(const Program& program, const MemoryPlan& plan) const = 0;
  /// Sets the kernels of a launch on a level. The dims of calls are in [0, most].
  virtual void choose_kernels(const Program& program, const Launch& launch, std::size_t level,
                              const DimBindings& most, LibraryKernels& kernels,
                              codegen::LibraryLaunch& code) const = 0;
  /// Describes the kernels of a level, before they are compiled.
  virtual void describe_kernels(const LibraryKernels& /*kernels*/, std::size_t /*number_of*/,
                                codegen::LibraryLevel& /*level*/) const {}
};

}  // namespace lathe
