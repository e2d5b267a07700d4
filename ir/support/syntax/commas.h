#pragma once

#include <ranges>
#include <string_view>
#include <vector>

namespace lathe::syntax {

/// Splits "+avx2,+fma" at commas. The parts refer to the text; an empty text has none.
inline std::vector<std::string_view> at_commas(std::string_view list) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(list, ',')) parts.emplace_back(part.begin(), part.end());
  return parts;
}

}  // namespace lathe::syntax
