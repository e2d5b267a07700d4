#include "ir/support/reports/unsupported_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe {

void UnsupportedParts::add(std::string part, std::string place) {
  std::vector<std::string>& places = places_[std::move(part)];
  if (std::ranges::find(places, place) == places.end()) places.push_back(std::move(place));
}

void UnsupportedParts::report(std::string_view owner, std::string_view problem, std::string_view label,
                              std::string_view advice) const {
  if (places_.empty()) return;
  std::string list;
  for (const auto& [part, places] : places_) {
    constexpr std::size_t most = 6;
    const std::vector<std::string_view> names(places.begin(), places.end());
    list += fmt::format("{}{}: {}", list.empty() ? "" : "\n  ", part, list_of(names, most));
  }
  if (!advice.empty()) list += fmt::format("\n  {}", advice);
  throw UserError(fmt::format("{} has {} that {}", owner,
                              places_.size() == 1 ? "a part" : fmt::format("{} parts", places_.size()), problem),
                  label, list);
}

}  // namespace lathe
