#include "tools/stages.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/llvm/jit.h"
#include "ir/kernel/printer.h"
#include "passes/cpu/lower_cpu.h"
#include "runtime/target.h"

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
                        dims.empty() ? "" : " for ", fmt::join(dims, ", "), fmt::join(launch.names, ", "),
                        launch.loc.to_string());
  }
  return text;
}

}  // namespace

bool is_code_stage(std::string_view stage) { return stage == "kernels" || stage == "llvm" || stage == "asm"; }

std::string code_text(const ir::Graph& graph, std::string_view stage, std::string_view cpu) {
  const codegen::TargetCpu target = cpu == "host" ? codegen::TargetCpu::host() : codegen::TargetCpu::named(cpu);
  const Program program = lower_cpu(graph, vector_target(target));
  std::string text = stage == "kernels" ? launches_text(program) : std::string();
  for (std::size_t i = 0; i < program.kernels.size(); ++i) {
    text += fmt::format("\n{} kernel {}\n", stage == "kernels" ? "//" : stage == "llvm" ? ";" : "#", i);
    if (stage == "kernels")
      text += kernel::print(program.kernels[i]);
    else if (stage == "llvm")
      text += codegen::emit_llvm_ir(program.kernels[i], target);
    else
      text += codegen::emit_assembly(program.kernels[i], target);
  }
  return text;
}

}  // namespace lathe::tools
