#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/text/template/values/code_points.h"
#include "models/text/template/values/compare_values.h"
#include "models/text/template/values/json.h"
#include "models/text/template/values/repr.h"

namespace lathe::jinja {

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
