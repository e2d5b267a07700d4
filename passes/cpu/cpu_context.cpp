#include "passes/cpu/cpu_context.h"

#include <algorithm>

namespace lathe::cpu {

bool outgrows_caches(const ir::TensorType& type, const CpuInfo& cpu) {
  const auto elements = type.shape.numel().value();
  return elements && *elements * static_cast<std::int64_t>(size_in_bytes(type.dtype)) > cpu.last_level.bytes;
}

bool goes_past_caches(const CpuContext& lowering, const ElementwiseProgram& program, const ElementwiseStore& store) {
  const int buffer = lowering.buffer_of(store.node);
  const bool reads = std::any_of(program.code.begin(), program.code.end(), [&](const ElementwiseInstruction& i) {
    return i.buffer.valid() && lowering.buffer_of(i.buffer) == buffer;
  });
  return !reads && outgrows_caches(lowering.graph[store.node].type, lowering.cpu);
}

}  // namespace lathe::cpu
