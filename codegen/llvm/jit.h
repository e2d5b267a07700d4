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

/// Runs iterations [begin, end) of the parallel loop, counted from 0 independent of its bounds and step. `buffers`
/// and `dims` are in the kernel's order. A failed check stores its code to *status if that is 0. The store is not
/// atomic: pass each thread its own word. A kernel without a parallel loop has one iteration. Thread-safe.
using KernelFn = void (*)(void* const* buffers, const std::int64_t* dims, std::int64_t begin, std::int64_t end,
                          std::int64_t* status);
/// Returns the number of iterations of the parallel loop for these dims: 1 without such a loop, 0 for an empty one.
using ExtentFn = std::int64_t (*)(const std::int64_t* dims);

struct CompiledKernel {
  KernelFn run = nullptr;
  ExtentFn extent = nullptr;
};

struct CompileStats {
  int kernels = 0;     ///< number requested
  int distinct = 0;    ///< number of distinct canonical texts
  int compiled = 0;    ///< compiled by LLVM in this call
  int from_store = 0;  ///< loaded from the ObjectStore
  double seconds = 0;
};

/// Machine code of several kernels, in their order; identical kernels share it. The code lives as long as this object
/// or a copy of it.
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
  int threads = 2;  ///< maximum compilation threads
};

class Jit {
 public:
  /// `store` may be null; it must outlive the Jit. Construction is cheap: LLVM is initialized on the first miss.
  explicit Jit(JitOptions options = {}, ObjectStore* store = nullptr);

  /// Returns machine code for all kernels. Throws InternalError if LLVM rejects one, and UserError [cpu_mismatch] if
  /// this CPU cannot run the target's code.
  CompiledKernels compile(std::span<const kernel::Kernel> kernels) const;

 private:
  JitOptions options_;
  ObjectStore* store_;
  bool runs_here_;
};

/// Returns the key of a kernel's object in the store.
std::string object_key(const kernel::Kernel& kernel, const TargetCpu& target);

/// Returns human-readable LLVM IR after (or before) LLVM's passes, or assembly. Starts with the kernel's notes;
/// symbols contain its name. The target may differ from this CPU.
std::string emit_llvm_ir(const kernel::Kernel& kernel, const TargetCpu& target, bool optimized = true);
std::string emit_assembly(const kernel::Kernel& kernel, const TargetCpu& target);

/// "19.1.7"
std::string llvm_version();

}  // namespace lathe::codegen
