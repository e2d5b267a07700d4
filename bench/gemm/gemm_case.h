#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/jit.h"
#include "passes/cpu/gemm/gemm.h"
#include "runtime/host/arena.h"
#include "runtime/threads/thread_pool.h"

/// One matmul c[b, m, n] = sum_k lhs[b, m, k] rhs[b, n, k] in f32, compiled and ready to run.
namespace lathe::bench {

struct GemmCase {
  std::string name;
  std::int64_t batch, m, n, k;
  LaneAxis lhs, rhs;  ///< row: stored as [b, k, rows]; k: stored as [b, rows, k]
  int copies = 1;     ///< right operands, used in rotation so that each is read from memory
  bool sums_tokens() const { return lhs == LaneAxis::row; }
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m * n) * static_cast<double>(k);
  }
};

class CompiledGemm {
 public:
  /// `known`: all sizes are compile-time constants. Otherwise the number of tokens is symbolic: the rows, or k if the
  /// left operand is stored along its rows, as for a weight gradient.
  CompiledGemm(const GemmCase& problem, const cpu::GemmPlan& plan, bool known, const codegen::TargetCpu& target);
  void pack(ThreadPool& threads, const float* lhs, const float* rhs);
  void multiply(ThreadPool& threads, const float* lhs, const float* rhs, float* result);
  const std::vector<kernel::Kernel>& kernels() const { return kernels_; }

 private:
  void run(ThreadPool& threads, std::size_t kernel, std::vector<void*> buffers) const;

  GemmCase case_;
  cpu::GemmPlan plan_;
  std::vector<kernel::Kernel> kernels_;
  codegen::CompiledKernels code_;
  std::vector<std::int64_t> dims_;
  Arena packed_lhs_, packed_rhs_, sums_;
};

/// Allocates memory as programs do: on 2 MB pages if the system provides them.
Arena float_arena(std::int64_t count);
inline float* floats(const Arena& arena) { return reinterpret_cast<float*>(arena.data()); }

/// Fused multiply-adds in registers, on one thread.
class PeakProbe {
 public:
  explicit PeakProbe(const codegen::TargetCpu& target);
  void run() const;
  double work() const;  ///< floating-point operations of one run

 private:
  codegen::CompiledKernels code_;
  int lanes_, chains_;
};

}  // namespace lathe::bench
