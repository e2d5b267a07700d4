#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe::jinja {

/// Python's int(text, base): white space around it, a sign, a prefix such as 0x where the base is 0 or that prefix's,
/// single underscores. Nothing for what is none. Failure [template_limit] beyond 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base);
/// Python's float(text).
std::optional<double> parse_real(std::string_view text);

}  // namespace lathe::jinja
