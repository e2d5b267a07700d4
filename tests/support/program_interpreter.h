#pragma once

#include <functional>
#include <span>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/machine/cpu_info.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/lowering/lower_options.h"
#include "passes/program/program.h"

namespace lathe::test {

/// Lowers a graph and runs its kernels by kernel::interpret, without generating code. Every buffer has memory of its
/// own with exactly the elements that the program asks for, and every access is checked, so an index out of bounds
/// throws InternalError. Temporaries and outputs start as NaN (integers as -1), so that reading what no launch wrote
/// shows in the result. The iterations of parallel loops run last half first: they may not lean on their order.
class ProgramInterpreter {
 public:
  explicit ProgramInterpreter(const ir::Graph& graph, const CpuInfo& cpu = {});
  /// With what `lower` makes of the graph after the default pipeline.
  ProgramInterpreter(const ir::Graph& graph,
                     const std::function<Program(const ir::Graph&, const LowerOptions&)>& lower,
                     const LowerOptions& options = {});
  /// With a program that the graph was compiled to, for a CPU and one process.
  ProgramInterpreter(const ir::Graph& graph, Program program);

  const Program& program() const { return program_; }
  /// Outputs by name, and every parameter and state after the run. Throws UserError [index_range] where a kernel's
  /// check fails.
  Tensors run(const Tensors& arguments) const;
  /// The same with another way of running a kernel: over its buffers and dims, giving the status word.
  using RunKernel = std::function<std::int64_t(const kernel::Kernel&, std::span<const kernel::BoundBuffer>,
                                               std::span<const std::int64_t>)>;
  Tensors run(const Tensors& arguments, const RunKernel& run_kernel) const;

 private:
  ir::Graph signature_;
  Program program_;
};

}  // namespace lathe::test
