#include "models/text/template/values/value_operators.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>

#include "ir/support/hash.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/object.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

namespace {

bool identical_views(const ListView& a, const ListView& b) {
  return a.source == b.source && a.total == b.total && a.start == b.start && a.step == b.step && a.count == b.count &&
         a.replaced == ListView::none && b.replaced == ListView::none;
}

bool identical_lists(const Value& a, const Value& b) {
  if (a.view() || b.view()) return a.view() && b.view() && identical_views(*a.view(), *b.view());
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), identical);
}

bool identical_dicts(const Dict& a, const Dict& b) {
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                    [](const Dict::Item& x, const Dict::Item& y) {
                      return identical(x.first, y.first) && identical(x.second, y.second);
                    });
}

}  // namespace

bool identical(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.is(Kind::object)) return false;
  switch (a.kind()) {
    case Kind::none:
    case Kind::missing: return true;
    case Kind::undefined:
      return a.undefined().message == b.undefined().message && a.undefined().unsafe == b.undefined().unsafe;
    case Kind::boolean:
    case Kind::integer: return a.integer() == b.integer();
    case Kind::real: return std::bit_cast<std::uint64_t>(a.real()) == std::bit_cast<std::uint64_t>(b.real());
    case Kind::string: return a.same_as(b) || (a.string() == b.string() && a.text().safe == b.text().safe);
    case Kind::list:
    case Kind::tuple: return a.same_as(b) || identical_lists(a, b);
    case Kind::dict: return a.same_as(b) || identical_dicts(a.dict(), b.dict());
    case Kind::object: break;
  }
  return false;
}

bool holds_object(const Value& value) {
  if (value.is(Kind::object)) return true;
  if (value.is_sequence())
    return !value.view() && std::any_of(value.items().begin(), value.items().end(), holds_object);
  return value.is(Kind::dict) && std::any_of(value.dict().items().begin(), value.dict().items().end(),
                                             [](const Dict::Item& item) { return holds_object(item.second); });
}

namespace {

/// Converts a number to a type that represents every i64 and every f64 exactly.
long double exact(const Value& number) {
  return number.is_integer() ? static_cast<long double>(number.integer()) : static_cast<long double>(number.real());
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!a[i].same_as(b[i]) && !equal(a[i], b[i], budget)) return false;
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    const Value* other = b.find(key, budget);
    if (!other || (!other->same_as(value) && !equal(value, *other, budget))) return false;
  }
  return true;
}

std::string_view symbol(Order order) {
  switch (order) {
    case Order::less: return "<";
    case Order::less_equal: return "<=";
    case Order::greater: return ">";
    case Order::greater_equal: return ">=";
  }
  return {};
}

template <class T>
bool holds(Order order, const T& a, const T& b) {
  switch (order) {
    case Order::less: return a < b;
    case Order::less_equal: return a <= b;
    case Order::greater: return a > b;
    case Order::greater_equal: return a >= b;
  }
  return false;
}

}  // namespace

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) return exact(a) == exact(b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::none:
    case Kind::missing:
    case Kind::undefined: return true;
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: return false;  // compared above
    case Kind::string: budget.spend_reading(a.string().size()); return a.string() == b.string();
    case Kind::list:
    case Kind::tuple: return equal_items(a.items(), b.items(), budget);
    case Kind::dict: return equal_dicts(a.dict(), b.dict(), budget);
    case Kind::object: return a.object()->equals(*b.object());
  }
  return false;
}

bool ordered(Order order, const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) return holds(order, exact(a), exact(b));
  if (a.is_string() && b.is_string()) {
    budget.spend_reading(std::min(a.string().size(), b.string().size()));
    return holds(order, a.string(), b.string());  // UTF-8 byte order is code point order
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const auto &left = a.items(), &right = b.items();
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      if (!equal(left[i], right[i], budget)) return ordered(order, left[i], right[i], budget);
    return holds(order, left.size(), right.size());
  }
  fail_operation(fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol(order), type_name(a),
                             type_name(b)));
}

std::uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::uint64_t hash_of(const Value& value, Budget& budget) {
  budget.spend(1);
  switch (value.kind()) {
    case Kind::none:
    case Kind::missing:
    case Kind::undefined: return static_cast<std::uint64_t>(value.kind());
    case Kind::boolean:
    case Kind::integer: return std::hash<double>{}(static_cast<double>(value.integer()));
    case Kind::real: return std::hash<double>{}(value.real());
    case Kind::string: budget.spend_reading(value.string().size()); return hash_of(value.string());
    case Kind::tuple: {
      std::uint64_t hash = value.items().size();
      for (const Value& item : value.items()) hash = mix_hash(hash, hash_of(item, budget));
      return hash;
    }
    case Kind::list:
    case Kind::dict: break;
    case Kind::object: return std::hash<const void*>{}(value.object());
  }
  fail_operation(fmt::format("unhashable type: '{}'", type_name(value)));
}

bool truth(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::none:
    case Kind::missing:
    case Kind::undefined: return false;
    case Kind::boolean:
    case Kind::integer: return value.integer() != 0;
    case Kind::real: return value.real() != 0;
    case Kind::string: return !value.string().empty();
    case Kind::list:
    case Kind::tuple: return value.size() != 0;
    case Kind::dict: return value.dict().size() != 0;
    case Kind::object: return value.object()->truth(runtime);
  }
  return false;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  Budget& budget = runtime.budget();
  if (container.is_string()) {
    if (!item.is_string())
      fail_operation(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    budget.spend_searching(container.string().size(), item.string().size());
    return find_first(container.string(), item.string()) != std::string::npos;
  }
  if (container.is(Kind::dict)) return container.dict().find(item, budget) != nullptr;
  Iterator* items = try_iterate(runtime, container);
  if (!items) fail_operation(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  for (Value next = items->next(runtime); !next.is_missing(); next = items->next(runtime)) {
    budget.spend(1);
    if (next.same_as(item) || equal(next, item, budget)) return true;
  }
  return false;
}

namespace {

[[noreturn]] void fail_overflow() { fail_limit("an integer is beyond 64 bits"); }

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::add: return "+";
    case BinaryOp::subtract: return "-";
    case BinaryOp::multiply: return "*";
    case BinaryOp::divide: return "/";
    case BinaryOp::floor_divide: return "//";
    case BinaryOp::modulo: return "%";
    case BinaryOp::power: return "** or pow()";
  }
  return {};
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_operation("integer division or modulo by zero");
  if (b == -1 && a == INT64_MIN) fail_overflow();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_operation("integer modulo by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  if (b == 0) fail_operation("float modulo");
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  if (b == 0) fail_operation("float floor division by zero");
  const double rest = floor_modulo(a, b), quotient = (a - rest) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail_operation("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) fail_unsupported("complex numbers");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
    fail_operation("(34, 'Numerical result out of range')");
  return power;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return float_power(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(power, base, &power)) fail_overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return power;
}

Value integers(BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case BinaryOp::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case BinaryOp::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case BinaryOp::divide:
      if (b == 0) fail_operation("division by zero");
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case BinaryOp::floor_divide: return floor_divide(a, b);
    case BinaryOp::modulo: return floor_modulo(a, b);
    case BinaryOp::power: return integer_power(a, b);
  }
  if (overflow) fail_overflow();
  return result;
}

Value floats(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::subtract: return a - b;
    case BinaryOp::multiply: return a * b;
    case BinaryOp::divide:
      if (b == 0) fail_operation("float division by zero");
      return a / b;
    case BinaryOp::floor_divide: return floor_divide(a, b);
    case BinaryOp::modulo: return floor_modulo(a, b);
    case BinaryOp::power: return float_power(a, b);
  }
  return {};
}

Value add_strings(Runtime& runtime, const Text& a, const Text& b) {
  runtime.spend(a.bytes.size() + b.bytes.size());
  const bool safe = a.safe || b.safe;
  std::string text = safe && !a.safe ? escape_html(a.bytes) : a.bytes;
  text += safe && !b.safe ? escape_html(b.bytes) : b.bytes;
  return {std::move(text), safe};
}

Value add_sequences(Runtime& runtime, const Value& a, const Value& b) {
  runtime.spend((a.items().size() + b.items().size()) * sizeof(Value));
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value repeat_sequence(Runtime& runtime, const Value& sequence, std::int64_t count) {
  const auto& once = sequence.items();
  const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  if (times > (1u << 30)) fail_limit("a list is repeated too often");
  runtime.spend(once.size() * times * sizeof(Value));
  std::vector<Value> items;
  if (!once.empty())
    for (std::uint64_t i = 0; i < times; ++i) items.insert(items.end(), once.begin(), once.end());
  return sequence.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value add(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return add_strings(runtime, a.text(), b.text());
  if (a.is_sequence() && a.kind() == b.kind()) return add_sequences(runtime, a, b);
  const bool plain_string = a.is_string() && !a.text().safe;
  if (plain_string || a.is_sequence())
    fail_operation(fmt::format("can only concatenate {0} (not \"{1}\") to {0}", type_name(a), type_name(b)));
  fail_operation(fmt::format("unsupported operand type(s) for +: '{}' and '{}'", type_name(a), type_name(b)));
}

Value multiply(Runtime& runtime, const Value& a, const Value& b) {
  const bool sequence_first = a.is_string() || a.is_sequence();
  const Value &sequence = sequence_first ? a : b, &count = sequence_first ? b : a;
  if (!sequence.is_string() && !sequence.is_sequence())
    fail_operation(fmt::format("unsupported operand type(s) for *: '{}' and '{}'", type_name(a), type_name(b)));
  if (!count.is_integer() && sequence.is_string() && sequence.text().safe)
    fail_operation(fmt::format("'{}' object cannot be interpreted as an integer", type_name(count)));
  if (!count.is_integer())
    fail_operation(fmt::format("can't multiply sequence by non-int of type '{}'", type_name(count)));
  if (sequence.is_string()) return {repeat(runtime, sequence.string(), count.integer()), sequence.text().safe};
  return repeat_sequence(runtime, sequence, count.integer());
}

}  // namespace

Value binary(Runtime& runtime, BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::modulo && a.is_string()) fail_unsupported("formatting of strings by % is not supported");
  require_defined(a);
  require_defined(b);
  if (a.is_integer() && b.is_integer()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return floats(op, a.real(), b.real());
  if (op == BinaryOp::add) return add(runtime, a, b);
  if (op == BinaryOp::multiply) return multiply(runtime, a, b);
  fail_operation(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b)));
}

Value unary(UnaryOp op, const Value& value) {
  require_defined(value);
  const bool minus = op == UnaryOp::minus;
  if (!value.is_number())
    fail_operation(fmt::format("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(value)));
  if (!value.is_integer()) return minus ? -value.real() : value.real();
  return minus ? integers(BinaryOp::subtract, 0, value.integer()) : Value(value.integer());
}

Value concatenate(Runtime& runtime, const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) text += to_text(runtime, value);
  runtime.spend(text.size());
  return text;
}

std::string repeat(Runtime& runtime, std::string_view text, std::int64_t count) {
  if (count <= 0 || text.empty()) return {};
  if (static_cast<std::uint64_t>(count) > (1u << 30)) fail_limit("a text is repeated too often");
  runtime.spend(text.size() * static_cast<std::uint64_t>(count));
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  return out;
}

std::int64_t truncate_to_integer(double value) {
  if (std::isnan(value)) fail_operation("cannot convert float NaN to integer");
  if (std::isinf(value)) fail_operation("cannot convert float infinity to integer");
  if (!(std::abs(value) < 0x1p63)) fail_overflow();
  return static_cast<std::int64_t>(value);
}

Value round_number(const Value& number, std::int64_t digits) {
  if (number.is_integer()) {
    if (digits >= 0) return number.integer();
    if (digits < -18) return 0;
    std::int64_t unit = 1;
    for (; digits < 0; ++digits) unit *= 10;
    const std::int64_t down = floor_divide(number.integer(), unit), rest = floor_modulo(number.integer(), unit);
    const bool up = 2 * rest > unit || (2 * rest == unit && down % 2 != 0);
    return integers(BinaryOp::multiply, down + up, unit);
  }
  const double value = number.real();
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  // Rounds the exact decimal value half to even and parses the result.
  const std::string text = fmt::format("{:.{}f}", value, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

}  // namespace lathe::jinja
