#include "models/text/template/values/repr.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "models/text/template/values/char_class.h"
#include "models/text/template/values/code_points.h"

namespace lathe::jinja {

namespace {

std::string escaped(char32_t point, char quote) {
  const auto number = static_cast<std::uint32_t>(point);
  if (point == '\n') return "\\n";
  if (point == '\r') return "\\r";
  if (point == '\t') return "\\t";
  if (point == '\\' || point == static_cast<char32_t>(quote)) return {'\\', static_cast<char>(point)};
  if (point < 0x100) return fmt::format("\\x{:02x}", number);
  if (point < 0x10000) return fmt::format("\\u{:04x}", number);
  return fmt::format("\\U{:08x}", number);
}

class Printer {
 public:
  explicit Printer(Runtime& runtime) : runtime_(runtime) {}

  void print(const Value& value, int depth) {
    if (depth > Value::max_depth) fail_limit("values that are printed nest too deep");
    switch (value.kind()) {
      case Kind::none: return put("None");
      case Kind::missing:
      case Kind::undefined: return put("Undefined");
      case Kind::boolean: return put(value.boolean() ? "True" : "False");
      case Kind::integer: return put(fmt::format("{}", value.integer()));
      case Kind::real: return put(float_repr(value.real()));
      case Kind::string:
        return put(value.text().safe ? fmt::format("Markup({})", string_repr(value.string()))
                                     : string_repr(value.string()));
      case Kind::list: return print_items(value.items(), "[", "]", depth);
      case Kind::tuple: return print_items(value.items(), "(", value.items().size() == 1 ? ",)" : ")", depth);
      case Kind::dict: return print_dict(value.dict(), depth);
      case Kind::object: return put(value.object()->repr(runtime_, depth));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void put(std::string_view text) {
    runtime_.spend(text.size());
    text_ += text;
  }

  void print_items(const std::vector<Value>& items, std::string_view open, std::string_view close, int depth) {
    put(open);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) put(", ");
      print(items[i], depth + 1);
    }
    put(close);
  }

  void print_dict(const Dict& dict, int depth) {
    put("{");
    for (std::size_t i = 0; i < dict.size(); ++i) {
      if (i) put(", ");
      print(dict.items()[i].first, depth + 1);
      put(": ");
      print(dict.items()[i].second, depth + 1);
    }
    put("}");
  }

  Runtime& runtime_;
  std::string text_;
};

}  // namespace

std::string to_text(Runtime& runtime, const Value& value) {
  if (value.is_undefined() || value.is_missing()) return {};
  if (value.is_string()) {
    runtime.spend(value.string().size());
    return value.string();
  }
  return repr(runtime, value);
}

Value to_string_value(Runtime& runtime, const Value& value) {
  return value.is_string() ? value : Value(to_text(runtime, value));
}

std::string repr(Runtime& runtime, const Value& value, int depth) {
  Printer printer(runtime);
  printer.print(value, depth);
  return printer.take();
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), std::abs(value), std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(written.ptr - buffer));
  const std::size_t mark = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  std::string digits(text.substr(0, 1));
  if (mark > 2) digits += text.substr(2, mark - 2);
  const std::string sign = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent + 1);
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string string_repr(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = single ? '"' : '\'';
  std::string quoted(1, quote);
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at)) {
    const char32_t point = code_point_at(text, at);
    if (point == '\\' || point == static_cast<char32_t>(quote) || !is_printable(point))
      quoted += escaped(point, quote);
    else
      quoted += text.substr(at, code_point_size(text, at));
  }
  return quoted + quote;
}

Runtime::Level Runtime::deeper() {
  if (levels_ >= most_levels_)
    fail_limit("maximum recursion depth exceeded",
               fmt::format("macros, blocks, expressions and iterations run at most {} deep within each other "
                           "(RenderLimits::depth)",
                           most_levels_));
  return Level(levels_);
}

std::string Object::repr(Runtime&, int) { return fmt::format("<{}>", type_name()); }

Value Object::call(Runtime&, const Arguments&) {
  fail_operation(fmt::format("'{}' object is not callable", type_name()));
}

}  // namespace lathe::jinja
