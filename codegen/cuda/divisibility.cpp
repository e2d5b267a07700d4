#include "codegen/cuda/divisibility.h"

namespace lathe::cuda {

namespace {

void tell_all(const kernel::Kernel& kernel, const kernel::Block& statements, kernel::Divisors& divisors) {
  for (const kernel::Statement& s : statements) {
    if (const auto* compute = std::get_if<kernel::Compute>(&s.node)) {
      divisors.tell(compute->value, kernel.values[static_cast<std::size_t>(compute->value)]);
    } else if (const auto* loop = std::get_if<kernel::Loop>(&s.node)) {
      divisors.tell_index(*loop);
      tell_all(kernel, loop->body, divisors);
    } else if (const auto* branch = std::get_if<kernel::Branch>(&s.node)) {
      tell_all(kernel, branch->then_block, divisors);
      tell_all(kernel, branch->else_block, divisors);
    } else if (const auto* ring = std::get_if<kernel::Ring>(&s.node)) {
      tell_all(kernel, ring->body, divisors);
    } else if (const auto* stage = std::get_if<kernel::Stage>(&s.node)) {
      tell_all(kernel, stage->fill, divisors);
      tell_all(kernel, stage->use, divisors);
    }
  }
}

}  // namespace

kernel::Divisors known_divisors(const kernel::Kernel& kernel) {
  kernel::Divisors divisors;
  for (std::size_t i = 0; i < kernel.values.size(); ++i)
    if (kernel.values[i].op == kernel::Opcode::constant)
      divisors.tell(static_cast<kernel::ValueId>(i), kernel.values[i]);
  tell_all(kernel, kernel.body, divisors);
  return divisors;
}

}  // namespace lathe::cuda
