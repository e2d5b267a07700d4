#include <map>

#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

namespace lathe::jinja {

namespace {

/// Adapts a predicate of the subject to a test without arguments.
template <bool (*holds)(Runtime&, const Value&)>
bool alone(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("the test", given, {});
  return holds(runtime, subject);
}

bool is_defined(Runtime&, const Value& value) { return !value.is_undefined(); }
bool is_undefined(Runtime&, const Value& value) { return value.is_undefined(); }
bool is_none(Runtime&, const Value& value) { return value.is_none(); }
bool is_boolean(Runtime&, const Value& value) { return value.is(Kind::boolean); }
bool is_true(Runtime&, const Value& value) { return value.is(Kind::boolean) && value.boolean(); }
bool is_false(Runtime&, const Value& value) { return value.is(Kind::boolean) && !value.boolean(); }
bool is_integer(Runtime&, const Value& value) { return value.is(Kind::integer); }
bool is_float(Runtime&, const Value& value) { return value.is(Kind::real); }
bool is_number(Runtime&, const Value& value) { return value.is_number(); }
bool is_string(Runtime&, const Value& value) { return value.is_string(); }
bool is_mapping(Runtime&, const Value& value) { return value.is(Kind::dict); }
bool is_escaped(Runtime&, const Value& value) { return value.is_string() && value.text().safe; }
bool is_filter(Runtime& runtime, const Value& value) {
  hash_of(value, runtime.budget());  // raises Python's TypeError for unhashable values
  return value.is_string() && find_filter(value.string());
}
bool is_test(Runtime& runtime, const Value& value) {
  hash_of(value, runtime.budget());
  return value.is_string() && find_test(value.string());
}
bool is_lowercase(Runtime& runtime, const Value& value) { return is_lower(to_text(runtime, value)); }
bool is_uppercase(Runtime& runtime, const Value& value) { return is_upper(to_text(runtime, value)); }
bool is_iterable(Runtime& runtime, const Value& value) { return try_iterate(runtime, value) != nullptr; }

bool is_callable(Runtime&, const Value& value) {
  return value.is_undefined() || (value.is(Kind::object) && value.object()->callable());
}

/// Returns whether the value has a length and elements.
bool is_sequence(Runtime&, const Value& value) {
  return value.is_string() || value.is_sequence() || value.is(Kind::dict) || value.is_undefined() ||
         (value.is(Kind::object) && dynamic_cast<const Range*>(value.object()));
}

bool has_remainder(Runtime& runtime, const Value& value, const Value& divisor, std::int64_t remainder) {
  return equal(binary(runtime, BinaryOp::modulo, value, divisor), remainder, runtime.budget());
}
bool is_odd(Runtime& runtime, const Value& value) { return has_remainder(runtime, value, 2, 1); }
bool is_even(Runtime& runtime, const Value& value) { return has_remainder(runtime, value, 2, 0); }

bool divisible_by(Runtime& runtime, const Value& subject, const Arguments& given) {
  return has_remainder(runtime, subject, Bound("divisibleby", given, {"num"})[0], 0);
}
bool same_as(Runtime&, const Value& subject, const Arguments& given) {
  return subject.same_as(Bound("sameas", given, {"other"})[0]);
}
bool is_in(Runtime& runtime, const Value& subject, const Arguments& given) {
  return contains(runtime, Bound("in", given, {"seq"})[0], subject);
}
template <bool wanted>
bool equal_to(Runtime& runtime, const Value& subject, const Arguments& given) {
  return equal(subject, Bound("equalto", given, {"other"})[0], runtime.budget()) == wanted;
}
template <Order order>
bool is_ordered(Runtime& runtime, const Value& subject, const Arguments& given) {
  return ordered(order, subject, Bound("comparison", given, {"other"})[0], runtime.budget());
}

constexpr TestEntry entries[] = {
    {"!=", equal_to<false>},
    {"<", is_ordered<Order::less>},
    {"<=", is_ordered<Order::less_equal>},
    {"==", equal_to<true>},
    {">", is_ordered<Order::greater>},
    {">=", is_ordered<Order::greater_equal>},
    {"boolean", alone<is_boolean>},
    {"callable", alone<is_callable>},
    {"defined", alone<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", equal_to<true>},
    {"equalto", equal_to<true>},
    {"escaped", alone<is_escaped>},
    {"even", alone<is_even>},
    {"false", alone<is_false>},
    {"filter", alone<is_filter>},
    {"float", alone<is_float>},
    {"ge", is_ordered<Order::greater_equal>},
    {"greaterthan", is_ordered<Order::greater>},
    {"gt", is_ordered<Order::greater>},
    {"in", is_in},
    {"integer", alone<is_integer>},
    {"iterable", alone<is_iterable>},
    {"le", is_ordered<Order::less_equal>},
    {"lessthan", is_ordered<Order::less>},
    {"lower", alone<is_lowercase>},
    {"lt", is_ordered<Order::less>},
    {"mapping", alone<is_mapping>},
    {"ne", equal_to<false>},
    {"none", alone<is_none>},
    {"number", alone<is_number>},
    {"odd", alone<is_odd>},
    {"sameas", same_as},
    {"sequence", alone<is_sequence>},
    {"string", alone<is_string>},
    {"test", alone<is_test>},
    {"true", alone<is_true>},
    {"undefined", alone<is_undefined>},
    {"upper", alone<is_uppercase>},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  static const std::map<std::string_view, const TestEntry*> all = [] {
    std::map<std::string_view, const TestEntry*> by_name;
    for (const TestEntry& entry : entries) by_name.emplace(entry.name, &entry);
    return by_name;
  }();
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace lathe::jinja
