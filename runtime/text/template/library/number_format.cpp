#include "runtime/text/template/library/number_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/text/template/library/strings.h"
#include "runtime/text/template/values/arithmetic.h"
#include "runtime/text/template/values/casing.h"
#include "runtime/text/template/values/code_points.h"
#include "runtime/text/template/values/lookup.h"
#include "runtime/text/template/values/repr.h"

namespace lathe::jinja {

namespace {

constexpr int max_width = 1 << 20;

struct Spec {
  std::string fill = " ";
  char align = 0;  ///< < > = ^
  char sign = '-';
  bool alternate = false;
  bool zeros = false;  ///< in front of numbers, behind their sign
  std::int64_t width = 0;
  char grouping = 0;  ///< , or _
  int precision = -1;
  char type = 0;
};

class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  Spec read() {
    Spec spec;
    read_alignment(spec);
    if (!text_.empty() && std::string_view("+- ").find(text_[0]) != std::string_view::npos) spec.sign = take();
    spec.alternate = skip('#');
    if (skip('0') && !spec.align) spec.fill = "0", spec.zeros = true;
    spec.width = number();
    if (skip(',')) spec.grouping = ',';
    if (skip('_')) spec.grouping = '_';
    if (skip('.')) {
      if (text_.empty() || text_[0] < '0' || text_[0] > '9') fail_operation("Format specifier missing precision");
      spec.precision = number();
    }
    if (!text_.empty()) spec.type = take();
    if (!text_.empty()) fail_operation("Invalid format specifier");
    return spec;
  }

 private:
  static bool is_alignment(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

  void read_alignment(Spec& spec) {
    if (text_.empty()) return;
    const std::size_t fill = code_point_size(text_, 0);
    if (text_.size() > fill && is_alignment(text_[fill])) {
      spec.fill = text_.substr(0, fill);
      text_.remove_prefix(fill);
      spec.align = take();
    } else if (is_alignment(text_[0])) {
      spec.align = take();
    }
  }
  char take() {
    const char c = text_[0];
    text_.remove_prefix(1);
    return c;
  }
  bool skip(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  int number() {
    int value = 0;
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') {
      value = value * 10 + (take() - '0');
      if (value > max_width) fail_limit("a format's width or precision is too large");
    }
    return value;
  }

  std::string_view text_;
};

/// Separators between groups of `size` digits of the whole part.
std::string grouped(const std::string& digits, char separator, std::size_t size) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i && (whole - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string pad_number(Runtime& runtime, const Spec& spec, const std::string& sign, const std::string& digits) {
  const std::string text = sign + digits;
  switch (spec.zeros ? '=' : spec.align) {
    case '<': return pad(runtime, text, spec.width, Align::left, spec.fill);
    case '^': {
      // Unlike str.center, the larger half is on the right.
      const std::int64_t gap = std::max<std::int64_t>(0, spec.width - count_code_points(text));
      return repeat(runtime, spec.fill, gap / 2) + text + repeat(runtime, spec.fill, gap - gap / 2);
    }
    case '=':
      return sign +
             pad(runtime, digits, spec.width - static_cast<std::int64_t>(sign.size()), Align::right, spec.fill);
    default: return pad(runtime, text, spec.width, Align::right, spec.fill);
  }
}

[[noreturn]] void fail_code(char type, const Value& value) {
  fail_operation(fmt::format("Unknown format code '{}' for object of type '{}'", type, type_name(value)));
}

std::string sign_of(const Spec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string format_integer(Runtime& runtime, const Spec& spec, const Value& value) {
  const char type = spec.type ? spec.type : 'd';
  if (spec.precision >= 0) fail_operation("Precision not allowed in integer format specifier");
  if (type == 'c') {
    std::string text;
    if (value.integer() < 0 || value.integer() > 0x10ffff) fail_operation("%c arg not in range(0x110000)");
    append_code_point(text, static_cast<char32_t>(value.integer()));
    return pad_number(runtime, spec, "", text);
  }
  if (std::string_view("bodxXn").find(type) == std::string_view::npos) fail_code(type, value);
  std::string digits = integer_digits(value.integer(), type == 'n' ? 'd' : type);
  if (spec.grouping) digits = grouped(digits, spec.grouping, type == 'd' ? 3 : 4);
  std::string sign = sign_of(spec, value.integer() < 0);
  if (spec.alternate && type != 'd' && type != 'n') sign += std::string("0") + type;
  return pad_number(runtime, spec, sign, digits);
}

std::string format_real(Runtime& runtime, const Spec& spec, const Value& value) {
  const double number = value.real(), size = std::abs(number);
  std::string digits;
  switch (spec.type) {
    case 0:
      // Like repr, but of so many digits where that is said, and never without a fraction.
      digits = spec.precision < 0 ? float_repr(size) : real_digits(size, 'g', spec.precision, spec.alternate);
      if (spec.precision >= 0 && digits.find_first_of(".einf") == std::string::npos) digits += ".0";
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': digits = real_digits(size, spec.type, spec.precision < 0 ? 6 : spec.precision, spec.alternate); break;
    case 'n': digits = real_digits(size, 'g', spec.precision < 0 ? 6 : spec.precision, spec.alternate); break;
    case '%':
      digits = real_digits(size * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) + '%';
      break;
    default: fail_code(spec.type, value);
  }
  if (spec.grouping) digits = grouped(digits, spec.grouping, 3);
  return pad_number(runtime, spec, sign_of(spec, std::signbit(number)), digits);
}

std::string format_string(Runtime& runtime, const Spec& spec, const Value& value) {
  if (spec.type && spec.type != 's') fail_code(spec.type, value);
  if (spec.sign != '-') fail_operation("Sign not allowed in string format specifier");
  if (spec.align == '=') fail_operation("'=' alignment not allowed in string format specifier");
  if (spec.grouping) fail_operation(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  std::string_view text = value.string();
  if (spec.precision >= 0) text = text.substr(0, byte_of_code_point(text, spec.precision));
  Spec aligned = spec;
  aligned.zeros = false;
  if (!spec.align) aligned.align = '<';
  return pad_number(runtime, aligned, "", std::string(text));
}

}  // namespace

std::string real_digits(double value, char type, int precision, bool alternate) {
  const bool capital = type >= 'A' && type <= 'Z';
  if (!std::isfinite(value)) {
    const std::string name = std::isnan(value) ? "nan" : "inf";
    return capital ? to_upper(name) : name;
  }
  switch (type) {
    case 'e':
    case 'E': {
      std::string text =
          alternate ? fmt::format("{:#.{}e}", value, precision) : fmt::format("{:.{}e}", value, precision);
      return capital ? to_upper(text) : text;
    }
    case 'g':
    case 'G': {
      std::string text =
          alternate ? fmt::format("{:#.{}g}", value, precision) : fmt::format("{:.{}g}", value, precision);
      return capital ? to_upper(text) : text;
    }
    default: return alternate ? fmt::format("{:#.{}f}", value, precision) : fmt::format("{:.{}f}", value, precision);
  }
}

std::string integer_digits(std::int64_t value, char type) {
  const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  switch (type) {
    case 'b': return fmt::format("{:b}", size);
    case 'o': return fmt::format("{:o}", size);
    case 'x': return fmt::format("{:x}", size);
    case 'X': return fmt::format("{:X}", size);
    default: return fmt::format("{}", size);
  }
}

std::string format_value(Runtime& runtime, const Value& value, std::string_view text) {
  if (text.empty()) return to_text(runtime, value);
  const Spec spec = SpecReader(text).read();
  if (value.is_string()) return format_string(runtime, spec, value);
  const bool as_real = spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.is_integer() && !as_real) return format_integer(runtime, spec, value);
  if (value.is_number()) return format_real(runtime, spec, value);
  fail_operation(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

}  // namespace lathe::jinja
