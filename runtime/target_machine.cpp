#include "runtime/target_machine.h"

#include "passes/cpu/lower_cpu.h"
#include "passes/gpu/lower_gpu.h"

namespace lathe {

Machine machine_of(const Target& target) {
  if (target.kind == Target::Kind::cpu) return cpu_machine(vector_target(target.cpu));
  return gpu_machine(target.arch && target.arch->has_warp_groups());
}

}  // namespace lathe
