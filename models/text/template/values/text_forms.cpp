#include "models/text/template/values/text_forms.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/support/error.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/value_operators.h"
#include "runtime/files/file_io.h"
#include "runtime/files/strict_json.h"

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

namespace {

/// Builds values from the parser's events, because the parser's own objects sort their keys.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    // The parser also calls this for i64 values that are not negative.
    return value <= INT64_MAX ? add(value) : add(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(Value(std::move(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (level.dict.find(value)) fail(fmt::format("the key {} occurs twice", quote(value)));
    level.key = std::move(value);
    return true;
  }
  bool end_object() override { return add(std::move(close().dict).finish()); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return add(Value::list(std::move(close().items))); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    fail(json_fault(text_, position, error.what()));
  }

  Value take() { return std::move(levels_.front().items.front()); }

 private:
  static constexpr std::size_t max_levels = 64;
  struct Level {
    std::vector<Value> items;
    DictBuilder dict;
    std::optional<std::string> key;  ///< key of the next value
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(fmt::format("{}: {}", file_, message), "json");
  }

  bool open() {
    if (levels_.size() > max_levels) fail(fmt::format("the JSON nests more than {} deep", max_levels));
    levels_.emplace_back();
    return true;
  }
  Level close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return level;
  }
  bool add(Value value) {
    Level& level = levels_.back();
    if (level.key) {
      level.dict.set(*level.key, std::move(value));
      level.key.reset();
    } else {
      level.items.push_back(std::move(value));
    }
    return true;
  }

  std::string_view text_, file_;
  std::vector<Level> levels_ = std::vector<Level>(1);
};

}  // namespace

Value parse_json(std::string_view text, std::string_view file) {
  Builder builder(text, file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

namespace {

void append_unit(std::string& text, std::uint32_t unit) { text += fmt::format("\\u{:04x}", unit); }

std::string float_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return float_repr(value);
}

std::string quoted(std::string_view text, bool ascii) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at)) {
    const char32_t point = code_point_at(text, at);
    switch (point) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\b': out += "\\b"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    const auto number = static_cast<std::uint32_t>(point);
    if (point < 0x20 || (ascii && point >= 0x7f && point < 0x10000)) {
      append_unit(out, number);
    } else if (ascii && point >= 0x10000) {
      append_unit(out, 0xd800 + ((number - 0x10000) >> 10));
      append_unit(out, 0xdc00 + ((number - 0x10000) & 0x3ff));
    } else {
      out += text.substr(at, code_point_size(text, at));
    }
  }
  return out + '"';
}

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value, int depth) {
    switch (value.kind()) {
      case Kind::none: return put("null");
      case Kind::boolean: return put(value.boolean() ? "true" : "false");
      case Kind::integer: return put(fmt::format("{}", value.integer()));
      case Kind::real: return put(float_json(value.real()));
      case Kind::string: return put(quoted(value.string(), style_.ascii));
      case Kind::list:
      case Kind::tuple: return write_items(value.items(), depth);
      case Kind::dict: return write_dict(value.dict(), depth);
      case Kind::missing:
      case Kind::undefined:
      case Kind::object: break;
    }
    fail_operation(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  std::string take() { return std::move(text_); }

 private:
  void put(std::string_view text) {
    runtime_.spend(text.size());
    text_ += text;
  }

  void line(int depth) {
    if (!style_.multiline) return;
    put("\n");
    for (int i = 0; i < depth; ++i) put(style_.indent);
  }

  void write_items(const std::vector<Value>& items, int depth) {
    if (items.empty()) return put("[]");
    put("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) put(style_.item_separator);
      line(depth + 1);
      write(items[i], depth + 1);
    }
    line(depth);
    put("]");
  }

  static std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::string: return key.string();
      case Kind::none: return "null";
      case Kind::boolean: return key.boolean() ? "true" : "false";
      case Kind::integer: return fmt::format("{}", key.integer());
      case Kind::real: return float_json(key.real());
      case Kind::missing:
      case Kind::undefined:
      case Kind::list:
      case Kind::tuple:
      case Kind::dict:
      case Kind::object: break;
    }
    fail_operation(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
  }

  void write_dict(const Dict& dict, int depth) {
    if (dict.size() == 0) return put("{}");
    std::vector<Dict::Item> items = dict.items();
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
        return ordered(Order::less, a.first, b.first, runtime_.budget());
      });
    put("{");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) put(style_.item_separator);
      line(depth + 1);
      put(quoted(key_text(items[i].first), style_.ascii));
      put(style_.key_separator);
      write(items[i].second, depth + 1);
    }
    line(depth);
    put("}");
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string text_;
};

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Writer writer(runtime, style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace lathe::jinja
