#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

/// Non-mutating methods of lists, tuples and dicts.
namespace lathe::jinja {

namespace {

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const MethodEntry& method) : self_(std::move(self)), method_(method) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& given) override {
    runtime.spend(4);
    if (!self_.is_string() || !self_.text().safe) return method_.call(runtime, self_, given);
    return call_safe(runtime, given);
  }
  std::string repr(Runtime&, int) override {
    return fmt::format("<built-in method {} of {} object>", method_.name, jinja::type_name(self_));
  }

 private:
  /// Calls a method of markup: escapes the arguments and returns markup.
  Value call_safe(Runtime& runtime, const Arguments& given) {
    const auto escaped = [](const Value& value) {
      return value.is_string() && !value.text().safe ? Value(escape_html(value.string()), true) : value;
    };
    Arguments safe = given;
    for (Value& value : safe.positional) value = escaped(value);
    for (auto& [name, value] : safe.named) value = escaped(value);
    const auto marked = [](const Value& value) { return value.is_string() ? Value(value.string(), true) : value; };
    Value result = method_.call(runtime, self_, safe);
    if (!result.is_sequence()) return marked(result);
    std::vector<Value> items = result.items();
    for (Value& item : items) item = marked(item);
    return result.is(Kind::list) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
  }

  Value self_;
  const MethodEntry& method_;
};

using Methods = std::map<std::string_view, const MethodEntry*>;

Methods table(std::initializer_list<std::span<const MethodEntry>> groups) {
  Methods methods;
  for (const auto& group : groups)
    for (const MethodEntry& entry : group) methods.emplace(entry.name, &entry);
  return methods;
}

const Methods& methods_of(const Value& value) {
  static const Methods none, strings = table({string_methods(), string_searches(), string_questions()}),
                             sequences = table({sequence_methods()}), dicts = table({dict_methods()});
  if (value.is_string()) return strings;
  if (value.is_sequence()) return sequences;
  return value.is(Kind::dict) ? dicts : none;
}

bool holds(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns whether the sandbox hides the attribute.
bool is_unsafe(const Value& value, std::string_view name) {
  if (holds({"__add__",     "__class__",  "__contains__",      "__delattr__",      "__dir__",
             "__doc__",     "__eq__",     "__format__",        "__getattribute__", "__getitem__",
             "__hash__",    "__init__",   "__init_subclass__", "__iter__",         "__len__",
             "__ne__",      "__new__",    "__reduce__",        "__reduce_ex__",    "__repr__",
             "__setattr__", "__sizeof__", "__str__",           "__subclasshook__"},
            name))
    return !value.is(Kind::object);
  if (value.is(Kind::list))
    return holds({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}, name);
  return value.is(Kind::dict) && holds({"clear", "pop", "popitem", "setdefault", "update"}, name);
}

bool is_unsupported(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::string:
      return holds(
          {"encode", "expandtabs", "format", "format_map", "isnumeric", "maketrans", "swapcase", "translate"}, name);
    case Kind::dict: return name == "fromkeys";
    case Kind::boolean:
    case Kind::integer:
      return holds({"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "imag",
                    "numerator", "real", "to_bytes"},
                   name);
    case Kind::real:
      return holds({"as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"}, name);
    case Kind::none:
    case Kind::missing:
    case Kind::undefined:
    case Kind::list:
    case Kind::tuple:
    case Kind::object: return false;
  }
  return false;
}

}  // namespace

Value bound_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (is_unsafe(value, name))
    return Value::undefined(
        fmt::format("access to attribute {} of '{}' object is unsafe.", string_repr(name), type_name(value)), true);
  if (value.is(Kind::object)) return value.object()->attribute(runtime, name);
  const Methods& methods = methods_of(value);
  const auto at = methods.find(name);
  const bool mutable_only = value.is(Kind::tuple) && name == "copy";
  if (at != methods.end() && !mutable_only) return runtime.make<BoundMethod>(value, *at->second);
  if (is_unsupported(value, name))
    fail_unsupported(fmt::format("{} of a {} is not supported", string_repr(name), type_name(value)));
  return Value::missing();
}

namespace {

Value count_items(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("count", given, {"value"});
  std::int64_t found = 0;
  for (const Value& item : self.items()) found += item.same_as(bound[0]) || equal(item, bound[0], runtime.budget());
  return found;
}

Value index(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("index", given, {"value", "start?", "stop?"});
  const auto& items = self.items();
  const SliceSteps steps = slice_steps(bound[1], bound[2], Value(), static_cast<std::int64_t>(items.size()));
  for (std::int64_t i = steps.start; i < steps.start + steps.count; ++i) {
    const Value& item = items[i];
    if (item.same_as(bound[0]) || equal(item, bound[0], runtime.budget())) return i;
  }
  if (self.is(Kind::tuple)) fail_operation("tuple.index(x): x not in tuple");
  fail_operation(fmt::format("{} is not in list", repr(runtime, bound[0])));
}

Value copy(Runtime&, const Value& self, const Arguments& given) {
  const Bound none("copy", given, {});
  return self;
}

Value get(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("get", given, {"key", "default?"});
  const Value* found = self.dict().find(bound[0], runtime.budget());
  return found ? *found : bound.get(1, Value());
}

template <DictView::What what>
Value view(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound none("the method", given, {});
  return runtime.make<DictView>(self, what);
}

}  // namespace

std::span<const MethodEntry> sequence_methods() {
  static constexpr MethodEntry entries[] = {{"copy", copy}, {"count", count_items}, {"index", index}};
  return entries;
}

std::span<const MethodEntry> dict_methods() {
  static constexpr MethodEntry entries[] = {{"copy", copy},
                                            {"get", get},
                                            {"items", view<DictView::What::items>},
                                            {"keys", view<DictView::What::keys>},
                                            {"values", view<DictView::What::values>}};
  return entries;
}

}  // namespace lathe::jinja
