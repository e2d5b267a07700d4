#include "tests/support/graphs/divisible_steps.h"

#include <random>

namespace lathe::test {

Tensors step_arguments(const ir::Graph& step, std::int64_t batch, std::int64_t length, double most) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> real(-most, most);
  Tensors arguments;
  for (const ir::ValueId id : step.arguments()) {
    const ir::Node& node = step[id];
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"B", batch}, {"T", length}}));
    const std::int64_t count = value.numel();
    if (node.name == "tokens")
      for (std::int64_t i = 0; i < count; ++i) value.set_int(i, static_cast<std::int64_t>(generator() % 32));
    if (node.name == "rng") value.set_int(0, 7);
    if (is_float(node.type.dtype) && !node.name.starts_with("optimizer."))
      for (std::int64_t i = 0; i < count; ++i) value.set(i, real(generator));
    arguments.insert({node.name, std::move(value)});
  }
  return arguments;
}

}  // namespace lathe::test
