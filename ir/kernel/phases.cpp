#include "ir/kernel/phases.h"

#include <algorithm>

#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

std::vector<KernelPhase> phases_of(const Kernel& kernel) {
  std::vector<KernelPhase> found;
  if (kernel.phase_kernels.empty()) return found;
  for (const Statement& s : kernel.body)
    if (const IntrinsicRecord* record = record_of(kernel, s); record && record->runs_kernel)
      found.push_back(phase_of(*intrinsic_operation(kernel, s)));
  return found;
}

KernelPhase phase_of(const Instruction& in) {
  const IntrinsicOp& op = *in.machine;
  return {static_cast<int>(op.attributes[0]), op.buffers, in.args, op.attributes[1],
          static_cast<std::uint64_t>(op.attributes[2])};
}

bool can_be_phase(const Kernel& kernel) {
  if (!kernel.maps.empty() || !kernel.phase_kernels.empty() || holds_region(kernel.body)) return false;
  std::int64_t threads[3] = {1, 1, 1};
  bool is_known = !kernel.parallel_loop();
  for_each_statement(kernel.body, [&](const Statement& s) {
    const IntrinsicRecord* const record = record_of(kernel, s);
    if (record && record->orders_blocks) is_known = false;  // blocks of a phase have no order
    const auto* loop = std::get_if<Loop>(&s.node);
    if (!loop || loop->kind < LoopKind::thread_x) return;
    const Instruction &lo = value(kernel, loop->lo), &hi = value(kernel, loop->hi), &step = value(kernel, loop->step);
    for (const Instruction* bound : {&lo, &hi, &step}) is_known = is_known && bound->op == Opcode::constant;
    if (!is_known) return;
    std::int64_t& along = threads[static_cast<int>(loop->kind) - static_cast<int>(LoopKind::thread_x)];
    along = std::max(along, (hi.integer - lo.integer + step.integer - 1) / step.integer);
  });
  const std::int64_t all = threads[0] * threads[1] * threads[2];
  return is_known && (all <= warp_threads || all % warp_threads == 0);
}

bool can_be_awaited(const Kernel& kernel, std::size_t parameter) {
  const BufferInfo& buffer = kernel.buffers[parameter];
  if (parameter >= KernelPhase::most_awaited || !is_float(buffer.dtype) || buffer.access == Access::read_write)
    return false;
  bool is_plain = true;
  for_each_statement(kernel.body, [&](const Statement& s) {
    if (const auto* prefetch = std::get_if<Prefetch>(&s.node))
      is_plain = is_plain && static_cast<std::size_t>(prefetch->buffer) != parameter;
    const Instruction* in = intrinsic_operation(kernel, s);
    is_plain = is_plain && !(in && std::ranges::any_of(in->machine->buffers, [&](const IntrinsicBuffer& used) {
                               return static_cast<std::size_t>(used.id) == parameter;
                             }));
  });
  return is_plain;
}

}  // namespace lathe::kernel
