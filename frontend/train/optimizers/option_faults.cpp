#include "frontend/train/optimizers/option_faults.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace lathe::detail {

Fault unless_positive(std::string_view name, double value) {
  if (value >= 0 && std::isfinite(value)) return std::nullopt;
  return fmt::format("{} is {}, not a finite number of 0 or more", name, value);
}

Fault unless_share(std::string_view name, double value) {
  if (value >= 0 && value < 1) return std::nullopt;
  return fmt::format("{} is {}, not in [0, 1)", name, value);
}

Fault unless_at_least(std::string_view name, double value, double least) {
  if (value >= least && std::isfinite(value)) return std::nullopt;
  return fmt::format("{} is {}, not a finite number of {} or more", name, value, least);
}

Fault first_of(std::initializer_list<Fault> faults) {
  const auto* const found = std::ranges::find_if(faults, [](const Fault& fault) { return fault.has_value(); });
  return found == faults.end() ? std::nullopt : *found;
}

}  // namespace lathe::detail
