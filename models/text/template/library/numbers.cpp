#include "models/text/template/library/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "models/text/template/values/code_points.h"
#include "models/text/template/values/failure.h"

namespace lathe::jinja {

namespace {

/// Removes single underscores between digits of `base`. Returns nullopt if an underscore is elsewhere.
std::optional<std::string> without_underscores(std::string_view text, std::int64_t base) {
  std::string plain;
  const auto is_digit = [&](std::size_t i) {
    if (i >= text.size()) return false;
    const char c = text[i];
    return (c >= '0' && c <= '9') || (base > 10 && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      plain += text[i];
    else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))
      return std::nullopt;
  }
  return plain;
}

std::int64_t base_of_prefix(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1] | 0x20) {
    case 'x': return 16;
    case 'o': return 8;
    case 'b': return 2;
    default: return 0;
  }
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip_end(strip_start(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (const std::int64_t prefix = base_of_prefix(text); prefix && (base == 0 || base == prefix)) {
    base = prefix;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  }
  auto digits = without_underscores(text, base);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  if (base == 0) {
    if (digits->front() == '0' && digits->find_first_not_of('0') != std::string::npos) return std::nullopt;
    base = 10;
  }
  if (negative) digits = "-" + *digits;
  std::int64_t value = 0;
  const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), value, static_cast<int>(base));
  if (read.ptr != digits->data() + digits->size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) fail_limit("an integer is beyond 64 bits");
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  text = strip_end(strip_start(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digits = without_underscores(text, 10);
  if (!digits || digits->empty() || digits->front() == '-' || digits->find('(') != std::string::npos)
    return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  if (read.ptr != digits->data() + digits->size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    // Out-of-range numbers underflow to 0 or overflow to infinity; a negative exponent or leading zero means
    // underflow.
    const bool tiny = digits->find("e-") != std::string::npos || digits->find("E-") != std::string::npos ||
                      digits->starts_with("0.") || digits->starts_with('.');
    value = tiny ? 0 : std::numeric_limits<double>::infinity();
  } else if (read.ec != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace lathe::jinja
