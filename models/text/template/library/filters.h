#pragma once

#include <span>
#include <string_view>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

struct FilterEntry {
  std::string_view name;
  /// subject | name(arguments)
  Value (*apply)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Returns the filter of that name, or null.
const FilterEntry* find_filter(std::string_view name);
/// Returns whether Jinja has the filter but this subset does not.
bool is_unsupported_filter(std::string_view name);

// Filters by their kind of subject.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();

/// Attribute argument of Jinja's filters: "a.b.0" selects nested items; None is the item itself.
class AttributeGetter {
 public:
  /// If `ignore_case`, returns strings in lower case. `otherwise` replaces undefined values, unless it is missing.
  AttributeGetter(Runtime& runtime, const Value& attribute, bool ignore_case = false,
                  Value otherwise = Value::missing());
  Value operator()(Runtime& runtime, Value item) const;

 private:
  std::vector<Value> steps_;
  bool ignore_case_;
  Value otherwise_;
};

}  // namespace lathe::jinja
