#include "runtime/target_machine.h"

#include "passes/lower_cpu.h"
#include "passes/lower_gpu.h"

namespace lathe {

CpuInfo cpu_info(const codegen::TargetCpu& cpu) { return cpu_info_for(cpu.cpu, cpu.features, cpu.vector_bits); }

MachineInfo machine_info(const Target& target) {
  if (target.kind == Target::Kind::cpu) return cpu_info(target.cpu);
  return gpu_info(target.arch ? target.arch->name() : std::string());
}

Machine machine_of(const Target& target) {
  const MachineInfo info = machine_info(target);
  if (const auto* const cpu = std::get_if<CpuInfo>(&info)) return cpu_machine(*cpu);
  return gpu_machine(std::get<GpuInfo>(info));
}

std::vector<Stage> code_stages(const Target& target) {
  if (target.kind == Target::Kind::cuda) return {{"cuda", "kernels as CUDA C++"}};
  return {{"llvm", "kernels as LLVM IR"}, {"asm", "kernels as assembly"}};
}

}  // namespace lathe
