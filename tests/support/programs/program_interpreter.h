#pragma once

#include <functional>
#include <span>

#include "ir/hardware/cpu_info.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/options/lower_options.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/program/program.h"

namespace lathe::test {

/// Lowers a graph and runs its kernels with kernel::interpret, without generating code. Every buffer has its own
/// memory with exactly the elements that the program requests, and every access is checked, so an out-of-bounds index
/// throws InternalError. Temporaries and outputs start as NaN (integers as -1), so that reads of unwritten memory
/// show in the result. Parallel loops run their second half first, because they must not depend on the order.
class ProgramInterpreter {
 public:
  explicit ProgramInterpreter(const ir::Graph& graph, const CpuInfo& cpu = {});
  /// Uses the result of `lower` for the graph after the default pipeline.
  ProgramInterpreter(const ir::Graph& graph,
                     const std::function<Program(const ir::Graph&, const LowerOptions&)>& lower,
                     const LowerOptions& options = {});
  /// Uses a program that the graph was compiled to, for a CPU and one process.
  ProgramInterpreter(const ir::Graph& graph, Program program);

  const Program& program() const { return program_; }
  /// Returns outputs by name, and every parameter and state after the run. Throws UserError [index_range] if a
  /// kernel's check fails.
  Tensors run(const Tensors& arguments) const;
  /// The same with another way to run a kernel: given its buffers and dims, it returns the status word.
  using RunKernel = std::function<std::int64_t(const kernel::Kernel&, std::span<const kernel::BoundBuffer>,
                                               std::span<const std::int64_t>)>;
  Tensors run(const Tensors& arguments, const RunKernel& run_kernel) const;

 private:
  ir::Graph signature_;
  Program program_;
};

}  // namespace lathe::test
