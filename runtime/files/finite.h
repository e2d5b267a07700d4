#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/files/safetensors.h"

namespace lathe {

/// An element that is infinite or no number.
struct NotFinite {
  std::string tensor;
  std::vector<std::int64_t> index;
  double value = 0;  ///< of a complex element the part that is not finite

  /// "'wte' is nan at [3, 0]"
  std::string to_string() const;
};

/// The first such element of the first tensor that has one; integers and booleans have none.
std::optional<NotFinite> find_not_finite(std::span<const TensorView> tensors);

}  // namespace lathe
