#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/host_tensor.h"

namespace lathe::ir::test {

/// Adds a number to the diagonals of the last two dims.
inline void add_to_diagonal(HostTensor& tensor, double number) {
  const std::vector<std::int64_t>& sizes = tensor.shape();
  if (number == 0 || sizes.size() < 2) return;
  const std::int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (i / columns % rows == i % columns) tensor.set(i, tensor.get(i) + number);
}

}  // namespace lathe::ir::test
