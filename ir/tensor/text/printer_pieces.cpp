#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

template <class List, class Print>
std::string list(const List& items, Print&& print_item) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + print_item(items[i]);
  return text + "]";
}

struct AttributePrinter {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return print_real(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(DType v) const { return std::string(lathe::name(v)); }
  std::string operator()(const Dim& v) const { return v.to_string(); }
  std::string operator()(const std::vector<std::int64_t>& v) const {
    return list(v, [](std::int64_t i) { return fmt::format("{}", i); });
  }
  std::string operator()(const std::vector<double>& v) const { return list(v, print_real); }
  std::string operator()(const Shape& v) const { return v.to_string(); }
  std::string operator()(const Number& v) const { return print_number(v); }
  std::string operator()(const NumberList& v) const { return list(v, print_number); }
  std::string operator()(const Body& v) const { return sigiled('@', v.graph().name); }
};

}  // namespace

std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  const auto e = text.find('e');
  if (e == std::string::npos) return text.find('.') == std::string::npos ? text + ".0" : text;
  // 1e+09 -> 1e9, 1e-05 -> 1e-5
  std::string exponent = text.substr(e + 1);
  const bool negative = exponent[0] == '-';
  exponent.erase(0, exponent.find_first_not_of("+-0"));
  return text.substr(0, e) + (negative ? "e-" : "e") + exponent;
}

std::string print_number(const Number& number) {
  return number.is_double() ? print_real(number.real()) : number.to_string();
}

std::string print_attribute(const Attribute& attribute) { return std::visit(AttributePrinter{}, attribute); }

std::string print_type(const TensorType& type, bool strides) {
  std::string text = type.to_string();
  if (type.is_contiguous()) return text;
  text += " strided";
  if (!strides) return text;
  const std::string inner = list(type.strides.items(), [](const Dim& d) { return d.to_string(); });
  return text + "(" + inner.substr(1, inner.size() - 2) + ")";
}

std::string print_location(const Location& loc) {
  const std::string_view gradient = loc.gradient() ? "gradient " : "";
  if (!loc.known()) return fmt::format("loc({}unknown)", gradient);
  std::string text = fmt::format("loc({}{}", gradient, quoted(loc.file()));
  if (loc.line() != 0) text += fmt::format(":{}", loc.line());
  if (!loc.scope().empty()) text += " in " + quoted(loc.scope());
  return text + ")";
}

bool is_default(const Op& op, std::string_view attribute, const Attribute& value) {
  for (const AttrSpec& spec : op.attrs.value) {
    if (spec.name != attribute || spec.required) continue;
    if (const auto* v = std::get_if<bool>(&spec.fallback)) return value == Attribute(*v);
    if (const auto* v = std::get_if<std::int64_t>(&spec.fallback)) return value == Attribute(*v);
    if (const auto* v = std::get_if<double>(&spec.fallback)) return value == Attribute(*v);
    if (const auto* v = std::get_if<std::string_view>(&spec.fallback)) return value == Attribute(std::string(*v));
  }
  return false;
}

}  // namespace lathe::ir
