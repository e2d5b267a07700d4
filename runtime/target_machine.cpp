#include "runtime/target_machine.h"

#include "codegen/cuda/emitter.h"
#include "codegen/llvm/jit.h"
#include "passes/cpu/cpu_machine.h"
#include "passes/gpu/gpu_machine.h"

namespace lathe {

CpuInfo cpu_info(const codegen::TargetCpu& cpu) { return cpu_info_for(cpu.cpu, cpu.features, cpu.vector_bits); }

MachineInfo machine_info(const Target& target) {
  if (target.kind == Target::Kind::cpu) return cpu_info(target.cpu);
  return gpu_info(target.arch ? target.arch->name() : std::string());
}

Machine machine_of(const Target& target) {
  const MachineInfo info = machine_info(target);
  if (const auto* const gpu = std::get_if<GpuInfo>(&info)) {
    Machine machine = gpu_machine(*gpu);
    machine.code = {{"cuda", "kernels as CUDA C++", "//",
                     [gpu = *gpu](const kernel::Kernel& kernel) { return cuda::emit(kernel, gpu); }}};
    return machine;
  }
  Machine machine = cpu_machine(std::get<CpuInfo>(info));
  machine.code = {{"llvm", "kernels as LLVM IR", ";",
                   [cpu = target.cpu](const kernel::Kernel& kernel) { return codegen::emit_llvm_ir(kernel, cpu); }},
                  {"asm", "kernels as assembly", "#",
                   [cpu = target.cpu](const kernel::Kernel& kernel) { return codegen::emit_assembly(kernel, cpu); }}};
  return machine;
}

}  // namespace lathe
