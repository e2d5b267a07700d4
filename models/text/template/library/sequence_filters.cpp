#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

/// Filters on whole iterables.
/// Filters that select: items by tests, attributes of items, a default value.
namespace lathe::jinja {

namespace {

Value first(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("first", given, {});
  Value item = iterate(runtime, subject)->next(runtime);
  return item.is_missing() ? Value::undefined("No first item, sequence was empty.") : item;
}

Value last(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("last", given, {});
  Value item = iterate_backwards(runtime, subject)->next(runtime);
  return item.is_missing() ? Value::undefined("No last item, sequence was empty.") : item;
}

Value length(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("length", given, {});
  return length_of(runtime, subject);
}

Value to_list(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("list", given, {});
  return Value::list(collect(runtime, subject));
}

Value join(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("join", given, {"d?", "attribute?"});
  const std::string separator = bound.has(0) ? to_text(runtime, bound[0]) : "";
  const AttributeGetter attribute(runtime, bound[1]);
  Iterator* items = iterate(runtime, subject);
  std::string text;
  bool begun = false;
  for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
    if (begun) text += separator;
    begun = true;
    text += to_text(runtime, attribute(runtime, item));
    runtime.spend(1 + separator.size());
  }
  return text;
}

/// Sort key that consists of several attributes of an item.
class SortKey {
 public:
  SortKey(Runtime& runtime, const Value& attributes, bool ignore_case) {
    if (!attributes.is_string()) {
      getters_.emplace_back(runtime, attributes, ignore_case);
      return;
    }
    std::string_view rest = attributes.string();
    for (;;) {
      const std::string_view one = rest.substr(0, rest.find(','));
      getters_.emplace_back(runtime, Value(one), ignore_case);
      if (one.size() == rest.size()) return;
      rest.remove_prefix(one.size() + 1);
    }
  }
  Value operator()(Runtime& runtime, const Value& item) const {
    std::vector<Value> keys;
    for (const AttributeGetter& getter : getters_) keys.push_back(getter(runtime, item));
    return Value::list(std::move(keys));
  }

 private:
  std::vector<AttributeGetter> getters_;
};

/// Sorts items by their keys. The sort is stable, also in reverse.
std::vector<Value> sorted(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? ordered(Order::less, b.first, a.first, runtime.budget())
                   : ordered(Order::less, a.first, b.first, runtime.budget());
  });
  std::vector<Value> items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return items;
}

Value sort(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("sort", given, {"reverse?", "case_sensitive?", "attribute?"});
  const SortKey key(runtime, bound[2], !bound.flag(runtime, 1, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : collect(runtime, subject)) {
    Value its_key = key(runtime, item);
    keyed.emplace_back(std::move(its_key), std::move(item));
  }
  return Value::list(sorted(runtime, std::move(keyed), bound.integer(0, 0) != 0));
}

Value dictsort(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("dictsort", given, {"case_sensitive?", "by?", "reverse?"});
  const std::string by = bound.has(1) ? bound.string(1) : "key";
  if (by != "key" && by != "value") fail_operation("You can only sort by either \"key\" or \"value\"");
  require_defined(subject);
  if (!subject.is(Kind::dict))
    fail_operation(fmt::format("'{}' object has no attribute 'items'", type_name(subject)));
  const AttributeGetter key(runtime, Value(), !bound.flag(runtime, 0, false));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [name, value] : subject.dict().items())
    keyed.emplace_back(key(runtime, by == "key" ? name : value), Value::tuple({name, value}));
  runtime.spend(keyed.size() * sizeof(Value));
  return Value::list(sorted(runtime, std::move(keyed), bound.integer(2, 0) != 0));
}

Value extreme(Runtime& runtime, const Value& subject, const Arguments& given, bool largest) {
  const Bound bound(largest ? "max" : "min", given, {"case_sensitive?", "attribute?"});
  const AttributeGetter key(runtime, bound[1], !bound.flag(runtime, 0, false));
  Iterator* items = iterate(runtime, subject);
  Value best = items->next(runtime);
  if (best.is_missing()) return Value::undefined("No aggregated item, sequence was empty.");
  Value best_key = key(runtime, best);
  for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
    Value its_key = key(runtime, item);
    if (!ordered(largest ? Order::greater : Order::less, its_key, best_key, runtime.budget())) continue;
    best = std::move(item);
    best_key = std::move(its_key);
  }
  return best;
}

Value min(Runtime& runtime, const Value& subject, const Arguments& given) {
  return extreme(runtime, subject, given, false);
}
Value max(Runtime& runtime, const Value& subject, const Arguments& given) {
  return extreme(runtime, subject, given, true);
}

Value sum(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("sum", given, {"attribute?", "start?"});
  const AttributeGetter attribute(runtime, bound[0]);
  Value total = bound.get(1, 0);
  if (total.is_string()) fail_operation("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator* items = iterate(runtime, subject);
  for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime)) {
    runtime.spend(2);
    total = binary(runtime, BinaryOp::add, total, attribute(runtime, item));
  }
  return total;
}

Value reverse(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("reverse", given, {});
  if (subject.is_string()) return slice_of(runtime, subject, Value(), Value(), -1);
  const bool reversible = subject.is_sequence() || subject.is(Kind::dict) || subject.is_undefined();
  if (reversible) return iterate_backwards(runtime, subject);
  if (subject.is(Kind::object))
    if (Iterator* items = subject.object()->iterate_backwards(runtime)) return items;
  Iterator* items = try_iterate(runtime, subject);
  if (!items) fail_operation("argument must be iterable");
  std::vector<Value> all = collect(runtime, items);
  std::reverse(all.begin(), all.end());
  return Value::list(std::move(all));
}

Value items_of(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("items", given, {});
  return make_generator(runtime, [subject](Runtime& run) -> Iterator* {
    if (subject.is_undefined()) return iterate(run, Value::list({}));
    if (!subject.is(Kind::dict)) fail_operation("Can only get item pairs from a mapping.");
    return iterate(run, run.make<DictView>(subject, DictView::What::items));
  });
}

Value unique(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("unique", given, {"case_sensitive?", "attribute?"});
  const AttributeGetter key(runtime, bound[1], !bound.flag(runtime, 0, false));
  return make_generator(runtime, [subject, key](Runtime& run) -> Iterator* {
    return make_filtered(run, iterate(run, subject),
                         [key, seen = DictBuilder()](Runtime& now, const Value& item) mutable {
                           Value its_key = key(now, item);
                           if (seen.find(its_key, now.budget())) return false;
                           now.spend(2 * sizeof(Value));
                           seen.set(std::move(its_key), true, now.budget());
                           return true;
                         });
  });
}

Value batch(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("batch", given, {"linecount", "fill_with?"});
  const std::int64_t size = bound.integer(0, 1);
  const Value fill = bound.get(1, Value());
  return make_generator(runtime, [=](Runtime& run) -> Iterator* {
    std::vector<Value> rows, row;
    for (Value& item : collect(run, subject)) {
      if (static_cast<std::int64_t>(row.size()) == size) rows.push_back(Value::list(std::exchange(row, {})));
      row.push_back(std::move(item));
    }
    if (!row.empty()) {
      if (!fill.is_none())
        for (; static_cast<std::int64_t>(row.size()) < size; run.spend(sizeof(Value))) row.push_back(fill);
      rows.push_back(Value::list(std::move(row)));
    }
    return iterate(run, Value::list(std::move(rows)));
  });
}

Value slice(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("slice", given, {"slices", "fill_with?"});
  const std::int64_t count = bound.integer(0, 1);
  const Value fill = bound.get(1, Value());
  return make_generator(runtime, [=](Runtime& run) -> Iterator* {
    const std::vector<Value> all = collect(run, subject);
    if (count == 0) fail_operation("integer division or modulo by zero");
    std::vector<Value> slices;
    const auto total = static_cast<std::int64_t>(all.size());
    auto at = all.begin();
    for (std::int64_t i = 0; i < count; ++i) {
      run.spend(sizeof(Value));
      const bool longer = i < total % count;
      const auto end = at + (total / count + longer);
      std::vector<Value> part(at, end);
      if (!longer && !fill.is_none()) part.push_back(fill);
      slices.push_back(Value::list(std::move(part)));
      at = end;
    }
    return iterate(run, Value::list(std::move(slices)));
  });
}

}  // namespace

std::span<const FilterEntry> sequence_filters() {
  static constexpr FilterEntry entries[] = {
      {"batch", batch},    {"count", length}, {"dictsort", dictsort}, {"first", first},
      {"items", items_of}, {"join", join},    {"last", last},         {"length", length},
      {"list", to_list},   {"max", max},      {"min", min},           {"reverse", reverse},
      {"slice", slice},    {"sort", sort},    {"sum", sum},           {"unique", unique},
  };
  return entries;
}

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
