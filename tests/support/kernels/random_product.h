#pragma once

#include <random>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"

namespace lathe::test {

/// Returns the sums that a kernel with buffers left, right and sums computes for random operands of `elements`
/// elements each, which are always the same. `run` gets the buffers and dims.
template <class Run>
std::vector<float> random_product(DType dtype, std::size_t elements, std::size_t sums, std::vector<std::int64_t> dims,
                                  const Run& run) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> left(elements), right(elements);
  for (auto* m : {&left, &right})
    for (auto& bits : *m) bits = dtype == bf16 ? kernel::bf16_bits(normal(random)) : kernel::f16_bits(normal(random));
  std::vector<float> result(sums, -1);
  const auto bind = [](auto& v) { return kernel::BoundBuffer{v.data(), static_cast<std::int64_t>(v.size())}; };
  const kernel::BoundBuffer buffers[] = {bind(left), bind(right), bind(result)};
  run(std::span<const kernel::BoundBuffer>(buffers), std::span<const std::int64_t>(dims));
  return result;
}

}  // namespace lathe::test
