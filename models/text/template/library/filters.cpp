#include "models/text/template/library/filters.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "models/text/template/values/casing.h"
#include "models/text/template/values/lookup.h"

namespace lathe::jinja {

const FilterEntry* find_filter(std::string_view name) {
  static const std::map<std::string_view, const FilterEntry*> all = [] {
    std::map<std::string_view, const FilterEntry*> entries;
    for (const auto group : {text_filters(), number_filters(), sequence_filters(), selection_filters()})
      for (const FilterEntry& entry : group) entries.emplace(entry.name, &entry);
    return entries;
  }();
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

bool is_unsupported_filter(std::string_view name) {
  static constexpr std::string_view names[] = {"filesizeformat", "format",    "groupby", "pprint",   "random",
                                               "striptags",      "urlencode", "urlize",  "wordwrap", "xmlattr"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

AttributeGetter::AttributeGetter(Runtime& runtime, const Value& attribute, bool ignore_case, Value otherwise)
    : ignore_case_(ignore_case), otherwise_(std::move(otherwise)) {
  if (attribute.is_none() || attribute.is_missing()) return;
  if (!attribute.is_string()) {
    steps_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.string();
  runtime.spend(rest.size() * sizeof(Value));
  for (;;) {
    const std::string_view step = rest.substr(0, rest.find('.'));
    std::int64_t number = 0;
    const auto read = std::from_chars(step.data(), step.data() + step.size(), number);
    const bool is_number =
        !step.empty() && step[0] != '-' && read.ec == std::errc() && read.ptr == step.data() + step.size();
    steps_.push_back(is_number ? Value(number) : Value(step));
    if (step.size() == rest.size()) return;
    rest.remove_prefix(step.size() + 1);
  }
}

Value AttributeGetter::operator()(Runtime& runtime, Value item) const {
  for (const Value& step : steps_) {
    item = element_of(runtime, item, step);
    if (item.is_undefined() && !otherwise_.is_missing()) item = otherwise_;
  }
  return ignore_case_ && item.is_string() ? Value(to_lower(item.string())) : item;
}

}  // namespace lathe::jinja
