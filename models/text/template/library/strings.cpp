#include "models/text/template/library/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "models/text/template/values/code_points.h"
#include "models/text/template/values/object.h"
#include "models/text/template/values/value_operators.h"

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

namespace {

bool below(std::size_t made, std::int64_t most) { return most < 0 || static_cast<std::int64_t>(made) < most; }

/// Returns the end of the run of white space (or, unless `space`, of other code points).
std::size_t run_end(std::string_view text, std::size_t at, bool space) {
  while (at < text.size() && is_space(code_point_at(text, at)) == space) at += code_point_size(text, at);
  return at;
}

std::size_t run_start(std::string_view text, std::size_t end, bool space) {
  while (end > 0) {
    const std::size_t size = code_point_size_before(text, end);
    if (is_space(code_point_at(text, end - size)) != space) break;
    end -= size;
  }
  return end;
}

}  // namespace

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides) {
  const bool start = sides != Sides::end, end = sides != Sides::start;
  if (!chars) {
    if (start) text = strip_start(text);
    return end ? strip_end(text) : text;
  }
  std::set<char32_t> points;
  for (std::size_t at = 0; at < chars->size(); at += code_point_size(*chars, at))
    points.insert(code_point_at(*chars, at));
  while (start && !text.empty() && points.contains(code_point_at(text, 0)))
    text.remove_prefix(code_point_size(text, 0));
  while (end && !text.empty()) {
    const std::size_t size = code_point_size_before(text, text.size());
    if (!points.contains(code_point_at(text, text.size() - size))) break;
    text.remove_suffix(size);
  }
  return text;
}

std::string replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t count) {
  std::string out;
  std::size_t at = 0, made = 0;
  const auto put = [&](std::string_view part) {
    runtime.spend(part.size());
    out += part;
  };
  if (from.empty()) {  // insert before every code point and at the end
    for (; at < text.size() && below(made, count); ++made) {
      put(to);
      const std::size_t size = code_point_size(text, at);
      put(text.substr(at, size));
      at += size;
    }
    put(text.substr(at));
    if (at == text.size() && below(made, count)) put(to);
    return out;
  }
  runtime.budget().spend_searching(text.size(), from.size());
  for (std::size_t found; below(made, count) && (found = find_first(text, from, at)) != std::string_view::npos;
       ++made) {
    put(text.substr(at, found - at));
    put(to);
    runtime.spend(1);
    at = found + from.size();
  }
  put(text.substr(at));
  return out;
}

std::vector<std::string_view> split(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t at = run_end(text, 0, true);
  while (at < text.size()) {
    if (!below(parts.size(), most)) {
      parts.push_back(text.substr(at));
      break;
    }
    const std::size_t end = run_end(text, at, false);
    parts.push_back(text.substr(at, end - at));
    at = run_end(text, end, true);
  }
  return parts;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  for (std::size_t found;
       below(parts.size(), most) && (found = find_first(text, separator, at)) != std::string_view::npos;) {
    parts.push_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

std::vector<std::string_view> split_back(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t end = run_start(text, text.size(), true);
  while (end > 0) {
    if (!below(parts.size(), most)) {
      parts.push_back(text.substr(0, end));
      break;
    }
    const std::size_t at = run_start(text, end, false);
    parts.push_back(text.substr(at, end - at));
    end = run_start(text, at, true);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_back(std::string_view text, std::string_view separator, std::int64_t most) {
  const std::string backwards = reversed(text), separator_backwards = reversed(separator);
  std::vector<std::string_view> parts = split(backwards, separator_backwards, most);
  for (std::string_view& part : parts) {
    const auto behind = static_cast<std::size_t>(part.data() - backwards.data());
    part = text.substr(text.size() - behind - part.size(), part.size());
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && !is_line_break(code_point_at(text, end))) end += code_point_size(text, end);
    std::size_t next = end;
    if (end < text.size()) next += text.substr(end).starts_with("\r\n") ? 2 : code_point_size(text, end);
    lines.push_back(text.substr(at, (keep_ends ? next : end) - at));
    at = next;
  }
  return lines;
}

std::string pad(Runtime& runtime, std::string_view text, std::int64_t width, Align align, std::string_view fill) {
  const std::int64_t size = count_code_points(text);
  if (width <= size) return std::string(text);
  const std::int64_t gap = width - size;
  // As in CPython, if the gap is odd, the larger half is on the left for odd widths.
  const std::int64_t left = align == Align::left ? 0 : align == Align::right ? gap : gap / 2 + (gap & width & 1);
  return repeat(runtime, fill, left) + std::string(text) + repeat(runtime, fill, gap - left);
}

std::string indent(std::string_view text, std::string_view by, bool first, bool blank) {
  // Append a line end, so that a last empty line is counted.
  const std::string ended = std::string(text) + '\n';
  std::string out;
  const auto lines = split_lines(ended, false);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i ? blank || !lines[i].empty() : first) out += by;
    out += lines[i];
  }
  return out;
}

}  // namespace lathe::jinja
