#include "runtime/text/template/library/printf.h"

#include <fmt/core.h>

#include <cmath>

#include "runtime/text/template/library/number_format.h"
#include "runtime/text/template/library/strings.h"
#include "runtime/text/template/values/arithmetic.h"
#include "runtime/text/template/values/code_points.h"
#include "runtime/text/template/values/repr.h"
#include "runtime/text/template/values/sequences.h"

namespace lathe::jinja {

namespace {

struct Directive {
  bool left = false, zero = false, alternate = false;
  std::string sign;  ///< of what is not negative
  std::int64_t width = 0;
  int precision = -1;
  char type = 's';
};

class Printf {
 public:
  Printf(Runtime& runtime, std::string_view format, const Value& values)
      : runtime_(runtime), format_(format), values_(values) {}

  std::string run() {
    while (at_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', at_), format_.size());
      put(format_.substr(at_, percent - at_));
      at_ = percent + 1;
      if (percent < format_.size()) directive();
    }
    const bool mapping = values_.is(Kind::dict) || values_.is(Kind::list) || values_.is_undefined() ||
                         (values_.is(Kind::object) && dynamic_cast<Range*>(values_.object()));
    if (!mapping && used_ < (values_.is(Kind::tuple) ? values_.items().size() : 1))
      fail_operation("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  void put(std::string_view text) {
    runtime_.spend(text.size());
    out_ += text;
  }

  char peek() const {
    if (at_ >= format_.size()) fail_operation("incomplete format");
    return format_[at_];
  }
  bool skip(char c) { return peek() == c && ++at_; }

  Value next_value() {
    if (values_.is(Kind::tuple)) {
      if (used_ < values_.items().size()) return values_.items()[used_++];
    } else if (used_ == 0) {
      ++used_;
      return values_;
    }
    fail_operation("not enough arguments for format string");
  }

  int number() {
    if (skip('*')) {
      const Value value = next_value();
      if (!value.is_integer()) fail_operation("* wants int");
      return bounded(value.integer());
    }
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') value = bounded(value * 10 + (format_[at_++] - '0'));
    return static_cast<int>(value);
  }
  static int bounded(std::int64_t value) {
    if (value > (1 << 20) || value < -(1 << 20)) fail_limit("a format's width or precision is too large");
    return static_cast<int>(value);
  }

  void directive() {
    Directive how;
    Value named = Value::missing();
    if (skip('(')) {
      const std::size_t end = format_.find(')', at_);
      if (end == std::string_view::npos) fail_operation("incomplete format key");
      require_defined(values_);
      if (values_.is(Kind::list)) fail_operation("list indices must be integers or slices, not str");
      if (!values_.is(Kind::dict)) fail_operation("format requires a mapping");
      const std::string_view name = format_.substr(at_, end - at_);
      const Value* found = values_.dict().find(name);
      if (!found) fail_operation(string_repr(name));
      named = *found;
      at_ = end + 1;
    }
    for (bool more = true; more;) {
      more = false;
      if (skip('-')) more = how.left = true;
      if (skip('0')) more = how.zero = true;
      if (skip('#')) more = how.alternate = true;
      if (skip('+')) more = true, how.sign = "+";
      if (skip(' ')) more = true, how.sign = how.sign.empty() ? " " : how.sign;
    }
    how.width = number();
    if (how.width < 0) how.left = true, how.width = -how.width;
    if (skip('.')) how.precision = std::max(0, number());
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    how.type = peek();
    ++at_;
    if (how.type == '%') return put("%");
    convert(how, named.is_missing() ? next_value() : named);
  }

  void convert(const Directive& how, const Value& value) {
    switch (how.type) {
      case 's': return put_text(how, to_text(runtime_, value));
      case 'r':
      case 'a': return put_text(how, repr(runtime_, value));
      case 'c': return put_text(how, character(value));
      case 'd':
      case 'i':
      case 'u': return put_integer(how, decimal(how, value));
      case 'o':
      case 'x':
      case 'X':
        if (!value.is_integer())
          fail_operation(fmt::format("%{} format: an integer is required, not {}", how.type, type_name(value)));
        return put_integer(how, value.integer());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return put_real(how, value);
      default:
        fail_operation(fmt::format("unsupported format character '{}' ({:#x}) at index {}", how.type,
                                   static_cast<unsigned char>(how.type),
                                   count_code_points(format_.substr(0, at_ - 1))));
    }
  }

  void put_text(const Directive& how, std::string_view text) {
    if (how.precision >= 0) text = text.substr(0, byte_of_code_point(text, how.precision));
    put(pad(runtime_, text, how.width, how.left ? Align::left : Align::right));
  }

  static std::string character(const Value& value) {
    if (value.is_string() && count_code_points(value.string()) == 1) return value.string();
    if (!value.is_integer()) fail_operation("%c requires int or char");
    if (value.integer() < 0 || value.integer() > 0x10ffff) fail_operation("%c arg not in range(0x110000)");
    std::string text;
    append_code_point(text, static_cast<char32_t>(value.integer()));
    return text;
  }

  static std::int64_t decimal(const Directive& how, const Value& value) {
    require_defined(value);
    if (value.is_integer()) return value.integer();
    if (value.is(Kind::real)) return truncate_to_integer(value.real());
    fail_operation(fmt::format("%{} format: a real number is required, not {}", how.type, type_name(value)));
  }

  void put_integer(const Directive& how, std::int64_t value) {
    std::string digits = integer_digits(value, how.type);
    if (static_cast<std::int64_t>(digits.size()) < how.precision)
      digits.insert(0, static_cast<std::size_t>(how.precision) - digits.size(), '0');
    std::string sign = value < 0 ? "-" : how.sign;
    if (how.alternate && how.type != 'd' && how.type != 'i' && how.type != 'u') sign += std::string("0") + how.type;
    put_number(how, sign, digits);
  }

  void put_real(const Directive& how, const Value& value) {
    require_defined(value);
    if (!value.is_number()) fail_operation(fmt::format("must be real number, not {}", type_name(value)));
    const double number = value.real();
    const std::string digits =
        real_digits(std::abs(number), how.type, how.precision < 0 ? 6 : how.precision, how.alternate);
    put_number(how, std::signbit(number) ? "-" : how.sign, digits);
  }

  void put_number(const Directive& how, const std::string& sign, const std::string& digits) {
    if (how.left) return put(pad(runtime_, sign + digits, how.width, Align::left));
    if (!how.zero) return put(pad(runtime_, sign + digits, how.width, Align::right));
    put(sign + pad(runtime_, digits, how.width - static_cast<std::int64_t>(sign.size()), Align::right, "0"));
  }

  Runtime& runtime_;
  std::string_view format_;
  const Value& values_;
  std::size_t at_ = 0, used_ = 0;
  std::string out_;
};

}  // namespace

std::string format_printf(Runtime& runtime, std::string_view format, const Value& values) {
  return Printf(runtime, format, values).run();
}

}  // namespace lathe::jinja
