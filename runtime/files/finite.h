#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/files/safetensors/safetensors.h"

namespace lathe {

/// An element that is infinite or NaN.
struct NotFinite {
  std::string tensor;
  std::vector<std::int64_t> index;
  double value = 0;  ///< the non-finite part of a complex element

  /// "'wte' is nan at [3, 0]"
  std::string to_string() const;
};

/// Returns the first non-finite element of the first tensor that has one. Integers and booleans are finite.
std::optional<NotFinite> find_not_finite(std::span<const TensorView> tensors);

}  // namespace lathe
