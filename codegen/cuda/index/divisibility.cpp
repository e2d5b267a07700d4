#include "codegen/cuda/index/divisibility.h"

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

kernel::Divisors known_divisors(const kernel::Kernel& kernel) {
  kernel::Divisors divisors;
  for (std::size_t i = 0; i < kernel.values.size(); ++i)
    if (kernel.values[i].op == kernel::Opcode::constant)
      divisors.tell(static_cast<kernel::ValueId>(i), kernel.values[i]);
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    if (const auto* compute = std::get_if<kernel::Compute>(&s.node))
      divisors.tell(compute->value, kernel.values[compute->value]);
    else if (const auto* loop = std::get_if<kernel::Loop>(&s.node))
      divisors.tell_index(*loop);
  });
  return divisors;
}

}  // namespace lathe::cuda
