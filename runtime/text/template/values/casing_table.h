#pragma once

#include <array>
#include <span>

namespace lathe::jinja {

/// A letter whose upper or title case is several; 0 fills up.
struct FullCase {
  char32_t point;
  std::array<char32_t, 3> upper, title;
};

/// Code points [first, last] that count as upper case, or as lower case.
struct CaseRange {
  char32_t first, last;
  bool upper;
};

/// In the order of code points.
std::span<const FullCase> full_case_table();
/// Cased code points that are letters of neither category.
std::span<const CaseRange> uncommon_case_table();

}  // namespace lathe::jinja
