#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"
#include "ir/support/object_store.h"

namespace lathe::codegen {

/// Runs iterations [begin, end) of the parallel loop, counted from 0 whatever its bounds and step. `buffers` and
/// `dims` are in the kernel's order. A failed check stores its code to *status if that is 0 (plain store: give every
/// thread its own word). A kernel without a parallel loop has one iteration. Any number of calls may run at once.
using KernelFn = void (*)(void* const* buffers, const std::int64_t* dims, std::int64_t begin, std::int64_t end,
                          std::int64_t* status);
/// The number of iterations of the parallel loop for these dims: 1 if there is none, 0 for an empty one.
using ExtentFn = std::int64_t (*)(const std::int64_t* dims);

struct CompiledKernel {
  KernelFn run = nullptr;
  ExtentFn extent = nullptr;
};

struct CompileStats {
  int kernels = 0;     ///< given
  int distinct = 0;    ///< different in canonical form
  int compiled = 0;    ///< by LLVM, in this call
  int from_store = 0;  ///< found in the ObjectStore
  double seconds = 0;
};

/// Machine code of some kernels, in their order; identical kernels share it. The code lives as long as this object
/// (or a copy: copies share).
class CompiledKernels {
 public:
  std::size_t size() const { return kernels_.size(); }
  const CompiledKernel& operator[](std::size_t i) const { return kernels_[i]; }
  const CompileStats& stats() const { return stats_; }

 private:
  friend class Jit;
  std::vector<CompiledKernel> kernels_;
  CompileStats stats_;
  std::shared_ptr<void> code_;
};

struct JitOptions {
  TargetCpu target = TargetCpu::host();
  int threads = 2;  ///< compiling at once, or fewer where the system does not start as many
};

class Jit {
 public:
  /// `store` may be null; it must outlive the Jit. Creating costs next to nothing: LLVM starts on the first miss.
  explicit Jit(JitOptions options = {}, ObjectStore* store = nullptr);

  /// Machine code for all the kernels. Throws InternalError where LLVM rejects one, UserError [cpu_mismatch] where
  /// the target's code does not run here.
  CompiledKernels compile(std::span<const kernel::Kernel> kernels) const;

 private:
  JitOptions options_;
  ObjectStore* store_;
  bool runs_here_;
};

/// The key of a kernel's object in the store.
std::string object_key(const kernel::Kernel& kernel, const TargetCpu& target);

/// LLVM IR after (or before) LLVM's passes, and the assembly, for people: the kernel's notes come first, symbols
/// carry its name. The target need not run here.
std::string emit_llvm_ir(const kernel::Kernel& kernel, const TargetCpu& target, bool optimized = true);
std::string emit_assembly(const kernel::Kernel& kernel, const TargetCpu& target);

/// "19.1.7"
std::string llvm_version();

}  // namespace lathe::codegen
