#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe::jinja {

/// Returns Python's int(text, base); nullopt if `text` is not a number. Accepts surrounding white space, a sign,
/// single underscores, and a prefix such as 0x if the base is 0 or matches. Throws Failure [template_limit] beyond 64
/// bits.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base);
/// Returns Python's float(text); nullopt if `text` is not a number.
std::optional<double> parse_real(std::string_view text);

}  // namespace lathe::jinja
