#pragma once

#include <string>
#include <string_view>

/// Searches whose time is linear in the text whatever is looked for; those of std::string are quadratic at worst.
namespace lathe::jinja {

/// The first position of `wanted` at or behind `from`; npos where there is none.
std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from = 0);
/// The last position of `wanted`; npos where there is none.
std::size_t find_last(std::string_view text, std::string_view wanted);

/// Last byte first.
std::string reversed(std::string_view text);

}  // namespace lathe::jinja
