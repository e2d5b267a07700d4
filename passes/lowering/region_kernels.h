#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/hardware/hardware_info.h"
#include "ir/options/lower_options.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

/// The input of all schedules. CpuContext and GpuContext add the hardware entry and the tuned sizes.
struct LoweringContext {
  const ir::Graph& graph;
  const FusionPlan& plan;
  const HardwareInfo& machine;
  BufferOf buffer_of;
  /// Adds a temporary buffer of `elements` elements and returns its index.
  std::function<int(DType, const Dim& elements, std::string name)> workspace;
  /// Same, per thread; its contents are undefined when a task starts.
  std::function<int(DType, const Dim& elements, std::string name)> scratch;
  /// Same, for a copy of values that keeps() selects: it persists between runs.
  std::function<int(DType, const Dim& elements, std::string name)> kept;
  /// Returns whether the value is a parameter that the graph does not update.
  std::function<bool(ir::ValueId)> is_fixed;
  /// Returns whether a packed copy of a fixed value should be kept between runs: if LowerOptions::packed_bytes
  /// suffices.
  std::function<bool(ir::ValueId)> keeps;
  const TuningChoices* tuning = nullptr;  ///< if set, matmuls report their tuning candidates
  int candidate = 0;                      ///< the tuning candidate that a matmul uses

  /// Returns nullptr for a GPU.
  const CpuInfo* if_cpu() const { return std::get_if<CpuInfo>(&machine); }
  const VectorRegisters& vectors() const;
};

/// Labels the kernels of a matmul with plan number `context.candidate`. If matmuls are tuned, also lists all plans.
template <class Plan>
void name_candidates(const LoweringContext& context, const std::vector<Plan>& plans,
                     std::vector<KernelContext::Built>& built) {
  for (KernelContext::Built& each : built) each.launch.candidate = context.candidate;
  if (context.tuning)
    for (const Plan& plan : plans) built.back().candidates.push_back(to_string(plan));
}

/// Returns the number of elements of a scatter_add's positions, sorted by row: see cpu::scatter_positions.
Dim scatter_positions_size(const ir::Graph& graph, ir::ValueId scatter);

/// Declares the buffers that the programs load from and store to.
void declare_buffers(KernelContext& context, const std::vector<const ElementwiseProgram*>& programs,
                     const LoweringContext& lowering);

/// Returns the identity of a reduction in its compute type. For integers, the limits of the type replace infinities.
kernel::Value reduction_identity(kernel::Builder& b, const ElementwiseInstruction& reduce);
/// Returns the number of lanes for a program. The widest dtype of its instructions decides.
int program_lanes(const ElementwiseProgram& program, const VectorRegisters& vectors);

/// Runs `body(index, lanes, mask)` over [lo, hi) in vectors of `lanes`: full vectors without a mask, then one masked
/// vector. `size` is hi - lo if known.
void vector_loop(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int lanes,
                 const std::function<void(kernel::Value, kernel::Value)>& body);

}  // namespace lathe
