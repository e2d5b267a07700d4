#include "runtime/target_machine.h"

#include "passes/cpu/lower_cpu.h"
#include "passes/gpu/lower_gpu.h"

namespace lathe {

VectorTarget vector_target(const codegen::TargetCpu& cpu) {
  const bool pairs = cpu.has("avx512bf16") && cpu.cpu.starts_with("znver");
  return {.bits = cpu.vector_bits,
          .dot_pairs = cpu.vector_bits == 512 && pairs,
          .far_l3 = cpu.has("amx-tile"),
          .tiles = cpu.vector_bits == 512 && cpu.has_tiles()};
}

Machine machine_of(const Target& target) {
  if (target.kind == Target::Kind::cpu) return cpu_machine(vector_target(target.cpu));
  return gpu_machine(target.arch && target.arch->has_warpgroups());
}

}  // namespace lathe
