#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/filters.h"
#include "models/text/template/library/generators.h"
#include "models/text/template/library/methods.h"
#include "models/text/template/library/tests.h"
#include "models/text/template/values/compare_values.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/sequences.h"

/// Filters that select: items by tests, attributes of items, a default value.
namespace lathe::jinja {

namespace {

/// Returns the arguments after the first `count` positional ones.
Arguments behind(const Arguments& given, std::size_t count) {
  const auto from = given.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, given.positional.size()));
  return {{from, given.positional.end()}, given.named};
}

/// Returns a generator of `make(..)`; an empty one if the subject is false, even if it is not iterable.
Value generate(Runtime& runtime, const Value& subject, std::function<Iterator*(Runtime&)> make) {
  return make_generator(runtime, [subject, make = std::move(make)](Runtime& run) {
    return truth(run, subject) ? make(run) : iterate(run, Value::list({}));
  });
}

Value map(Runtime& runtime, const Value& subject, const Arguments& given) {
  return generate(runtime, subject, [subject, given](Runtime& run) -> Iterator* {
    const bool by_attribute = std::any_of(given.named.begin(), given.named.end(),
                                          [](const auto& named) { return named.first == "attribute"; });
    if (given.positional.empty() && !by_attribute) fail_operation("map requires a filter argument");
    if (given.positional.empty()) {
      const Bound bound("map", given, {"attribute", "default?"});
      const Value otherwise = bound.is_set(1) ? bound[1] : Value::missing();
      return make_mapped(run, iterate(run, subject),
                         [attribute = AttributeGetter(run, bound[0], false, otherwise)](
                             Runtime& now, const Value& item) { return attribute(now, item); });
    }
    const Value& name = given.positional[0];
    const FilterEntry* filter = name.is_string() ? find_filter(name.string()) : nullptr;
    Iterator* items = iterate(run, subject);
    return make_mapped(run, items, [filter, name, rest = behind(given, 1)](Runtime& now, const Value& item) {
      if (!filter) fail_operation(fmt::format("No filter named {}.", repr(now, name)));
      return filter->apply(now, item, rest);
    });
  });
}

/// Returns the items whose `attribute` passes (or, unless `wanted`, fails) the test named by a positional argument.
/// Without `by_attribute`, tests the items themselves.
Iterator* pick(Runtime& runtime, const Value& subject, const Arguments& given, bool by_attribute, bool wanted) {
  const std::size_t at = by_attribute ? 1 : 0;
  if (given.positional.size() < at) fail_operation("Missing parameter for attribute name");
  const AttributeGetter attribute(runtime, by_attribute ? given.positional[0] : Value());
  Iterator* items = iterate(runtime, subject);
  if (given.positional.size() == at)
    return make_filtered(runtime, items,
                         [=](Runtime& now, const Value& item) { return truth(now, attribute(now, item)) == wanted; });
  const Value& name = given.positional[at];
  const TestEntry* test = name.is_string() ? find_test(name.string()) : nullptr;
  if (!test) fail_operation(fmt::format("No test named {}.", repr(runtime, name)));
  return make_filtered(runtime, items, [=, rest = behind(given, at + 1)](Runtime& now, const Value& item) {
    return test->holds(now, attribute(now, item), rest) == wanted;
  });
}

template <bool by_attribute, bool wanted>
Value select(Runtime& runtime, const Value& subject, const Arguments& given) {
  return generate(runtime, subject, [=](Runtime& run) { return pick(run, subject, given, by_attribute, wanted); });
}

Value otherwise(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("default", given, {"default_value?", "boolean?"});
  const bool replaced = subject.is_undefined() || (bound.flag(runtime, 1, false) && !truth(runtime, subject));
  return replaced ? bound.get(0, "") : subject;
}

Value attribute(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("attr", given, {"name"});
  require_defined(subject);
  const std::string name = to_text(runtime, bound[0]);
  Value found = bound_attribute(runtime, subject, name);
  if (!found.is_missing()) return found;
  return Value::undefined(fmt::format("{} has no attribute {}", string_repr(described(subject)), string_repr(name)));
}

}  // namespace

std::span<const FilterEntry> selection_filters() {
  static constexpr FilterEntry entries[] = {
      {"attr", attribute},
      {"d", otherwise},
      {"default", otherwise},
      {"map", map},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
  };
  return entries;
}

}  // namespace lathe::jinja
