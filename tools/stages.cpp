#include "tools/stages.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/emitter.h"
#include "codegen/llvm/jit.h"
#include "ir/kernel/printer.h"
#include "ir/tensor/binding.h"
#include "passes/fusion/print_regions.h"
#include "passes/memory/memory_plan.h"
#include "runtime/target_machine.h"

namespace lathe::tools {

namespace {

/// "// launch 3: kernel 2 @softmax(%4, %9) for B, n_seq  from %9 softmax at mha.cpp:14"
std::string launches_text(const Program& program) {
  std::string text;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    std::vector<std::string> buffers, dims;
    for (const int buffer : launch.buffers) buffers.push_back(program.buffers[static_cast<std::size_t>(buffer)].name);
    for (const Dim& dim : launch.dims) dims.push_back(dim.to_string());
    text += fmt::format("// launch {}: kernel {} @{}({}){}{}  from {} at {}\n", i, launch.kernel,
                        program.kernels[static_cast<std::size_t>(launch.kernel)].name, fmt::join(buffers, ", "),
                        dims.empty() ? "" : " for ", fmt::join(dims, ", "), fmt::join(launch.names(), ", "),
                        launch.loc.to_string());
  }
  return text;
}

std::string kernel_text(const kernel::Kernel& kernel, std::string_view stage, const Target& target) {
  if (stage == "kernels") return kernel::print(kernel);
  if (stage == "llvm") return codegen::emit_llvm_ir(kernel, target.cpu);
  if (stage == "asm") return codegen::emit_assembly(kernel, target.cpu);
  LATHE_ASSERT(stage == "cuda");
  return cuda::emit(kernel, std::get<GpuInfo>(machine_info(target)));
}

std::string plan_text(const Lowered& lowered, const StageOptions& options) {
  const std::vector<std::string> missing = ir::unbound_dims(lowered.graph, options.dims);
  if (!missing.empty())
    throw UserError(fmt::format("a memory plan is for one size of each dim: {} {} none", fmt::join(missing, ", "),
                                missing.size() == 1 ? "has" : "have"),
                    "dim_option", "give --dim NAME=SIZE");
  return print_plan(plan_memory(lowered.program, options.dims), lowered.program);
}

}  // namespace

std::vector<Stage> stages_after_passes(const Target& target) {
  std::vector<Stage> stages = lowering_stages();
  if (target.kind == Target::Kind::cuda) {
    stages.push_back({"cuda", "kernels as CUDA C++"});
  } else {
    stages.push_back({"llvm", "kernels as LLVM IR"});
    stages.push_back({"asm", "kernels as assembly"});
  }
  return stages;
}

std::string stage_text(const Lowered& lowered, std::string_view stage, const StageOptions& options) {
  if (stage == "fuse") return print_regions(lowered.regions, lowered.graph);
  if (stage == "memory-plan") return plan_text(lowered, options);
  const Program& program = lowered.program;
  std::string text = stage == "kernels" ? launches_text(program) : std::string();
  const std::string_view comment = stage == "llvm" ? ";" : stage == "asm" ? "#" : "//";
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    text += fmt::format("\n{} kernel {}\n", comment, i) + kernel_text(program.kernels[i], stage, options.target);
  return text;
}

}  // namespace lathe::tools
