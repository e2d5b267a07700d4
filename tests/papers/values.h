#pragma once

#include <cstdint>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"

namespace lathe::test {

/// Returns number `i`, in [0, 1), of a tensor: a hash of the name and i, as Store.draw of torch_papers.py.
inline double drawn(std::string_view name, std::int64_t i) {
  std::uint32_t seed = 2166136261U;
  for (const char byte : name) seed = (seed ^ static_cast<unsigned char>(byte)) * 16777619U;
  std::uint32_t u = static_cast<std::uint32_t>(i) * 2654435761U + seed;
  u ^= u >> 16;
  u *= 2246822519U;
  u ^= u >> 13;
  u *= 3266489917U;
  u ^= u >> 16;
  return static_cast<double>(u) / 4294967296.0;
}

/// Returns a tensor of (drawn - 0.5) * range, or of whole numbers below `range`.
inline HostTensor drawn_tensor(std::string_view name, DType dtype, const std::vector<std::int64_t>& sizes,
                               double range) {
  HostTensor tensor(dtype, sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (dtype == i64)
      tensor.set_int(i, static_cast<std::int64_t>(drawn(name, i) * range));
    else
      tensor.set(i, (drawn(name, i) - 0.5) * range);
  return tensor;
}

}  // namespace lathe::test
