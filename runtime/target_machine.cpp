#include "runtime/target_machine.h"

#include "passes/cpu/lower_cpu.h"
#include "passes/gpu/lower_gpu.h"

namespace lathe {

Machine machine_of(const Target& target) {
  if (target.kind == Target::Kind::cpu) return cpu_machine(vector_target(target.cpu));
  return gpu_machine(target.arch && target.arch->has_warp_groups());
}

ir::Pipeline compile_pipeline(const Target& target, const LowerOptions& options) {
  const bool is_gpu = target.kind == Target::Kind::cuda;
  const RowChunks chunks = options.chunks.value_or(is_gpu ? RowChunks::gpu() : RowChunks{});
  return compile_pipeline(machine_of(target), options, chunks);
}

Lowered lower_for(const Target& target, const ir::Graph& graph, const LowerOptions& options) {
  return lower_prepared(ir::run_pipeline(graph, compile_pipeline(target, options)).graph, machine_of(target),
                        options);
}

}  // namespace lathe
