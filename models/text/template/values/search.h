#pragma once

#include <string>
#include <string_view>

/// Text searches in linear time; the searches of std::string are quadratic in the worst case.
namespace lathe::jinja {

/// Returns the first position of `wanted` at or after `from`, or npos.
std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from = 0);
/// Returns the last position of `wanted`, or npos.
std::size_t find_last(std::string_view text, std::string_view wanted);

/// Returns the bytes in reverse order.
std::string reversed(std::string_view text);

}  // namespace lathe::jinja
