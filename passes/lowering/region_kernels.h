#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/machine/machine_info.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lower_options.h"

namespace lathe {

/// What the schedules of all regions are given.
struct LoweringContext {
  const ir::Graph& graph;
  const FusionPlan& plan;
  const MachineInfo& machine;
  BufferOf buffer_of;
  /// A fresh temporary of that many elements.
  std::function<int(DType, const Dim& elements, std::string name)> workspace;
  /// The same for each thread, undefined when a task starts.
  std::function<int(DType, const Dim& elements, std::string name)> scratch;
  const TuningChoices* tuning = nullptr;  ///< where given, products name their tuning candidates
  int candidate = 0;                      ///< the tuning candidate that a product takes

  const CpuInfo& cpu() const { return std::get<CpuInfo>(machine); }
  const GpuInfo& gpu() const { return std::get<GpuInfo>(machine); }
  /// Null for a GPU.
  const CpuInfo* if_cpu() const { return std::get_if<CpuInfo>(&machine); }
  const VectorRegisters& vectors() const;
};

/// Marks the kernels of a product as made by plan number `context.candidate`, and where products are tuned names
/// all plans.
template <class Plan>
void name_candidates(const LoweringContext& context, const std::vector<Plan>& plans,
                     std::vector<KernelContext::Built>& built) {
  for (KernelContext::Built& each : built) each.launch.candidate = context.candidate;
  if (context.tuning)
    for (const Plan& plan : plans) built.back().candidates.push_back(to_string(plan));
}

/// How many elements the positions of a scatter_add's updates, sorted by row, take: see cpu::scatter_positions.
Dim scatter_positions_size(const ir::Graph& graph, ir::ValueId scatter);

/// Declares the buffers that programs load from and store to; `extra` are written besides.
void declare_buffers(KernelContext& context, const std::vector<const ElementwiseProgram*>& programs,
                     const LoweringContext& lowering);

/// The identity of a reduction in the type it is computed in; infinities become the ends of an integer's range.
kernel::Value reduction_identity(kernel::Builder& b, const ElementwiseInstruction& reduce);
/// Whether a tensor is known to be larger than the caches: what is written there is gone from them when it is read.
bool outgrows_caches(const ir::TensorType& type, const CpuInfo& cpu);
/// Whether a result of a program goes past the caches: it is larger than they are, and nothing there is read. Else
/// each cache line of it would be read before it is written: a third of a copy's traffic.
bool goes_past_caches(const LoweringContext& lowering, const ElementwiseProgram& program,
                      const ElementwiseStore& store);
/// How many lanes the instructions of a program want: the widest type among them decides.
int program_lanes(const ElementwiseProgram& program, const VectorRegisters& vectors);

/// Runs `body(index, lanes, mask)` over [lo, hi) in vectors of `lanes`: unmasked as far as they fit, then once with a
/// mask. `size` is hi - lo where it is known.
void vector_loop(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int lanes,
                 const std::function<void(kernel::Value, kernel::Value)>& body);

}  // namespace lathe
