#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/jit.h"
#include "passes/schedule/gemm.h"

/// One product c[b, m, n] = sum_k lhs[b, m, k] rhs[b, n, k] in f32, compiled and ready to run.
namespace lathe::bench {

struct GemmCase {
  std::string name;
  std::int64_t batch, m, n, k;
  schedule::LaneAxis lhs, rhs;  ///< row: stored as [b, k, rows]; k: stored as [b, rows, k]
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m * n) * static_cast<double>(k);
  }
};

/// Runs the ranges of a parallel loop on one or two threads, handing out iterations one by one.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int threads() const;
  void run(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class CompiledGemm {
 public:
  /// `known`: sizes are compiled in; otherwise they are dims.
  CompiledGemm(const GemmCase& problem, const schedule::GemmPlan& plan, bool known, const codegen::TargetCpu& target);
  void pack(Team& team, const float* lhs, const float* rhs);
  void multiply(Team& team, const float* lhs, const float* rhs, float* result);
  const std::vector<kernel::Kernel>& kernels() const { return kernels_; }

 private:
  GemmCase case_;
  schedule::GemmPlan plan_;
  std::vector<kernel::Kernel> kernels_;
  codegen::CompiledKernels code_;
  std::vector<std::int64_t> dims_;
  std::shared_ptr<float> packed_lhs_, packed_rhs_;
};

/// 64-byte aligned on 2 MB pages where the system gives them.
std::shared_ptr<float> huge_floats(std::int64_t count);

/// Fused multiply-adds in registers on one thread.
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
