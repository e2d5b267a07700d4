#include "models/text/template/values/compare_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "ir/support/hash.h"
#include "models/text/template/values/object.h"
#include "models/text/template/values/search.h"
#include "models/text/template/values/sequences.h"

namespace lathe::jinja {

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

}  // namespace lathe::jinja
