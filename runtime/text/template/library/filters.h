#pragma once

#include <span>
#include <string_view>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

struct FilterEntry {
  std::string_view name;
  /// subject | name(arguments)
  Value (*apply)(Runtime& runtime, const Value& subject, const Arguments& arguments);
};

/// Null where there is no filter of that name.
const FilterEntry* find_filter(std::string_view name);
/// Whether Jinja has the filter, but this subset not.
bool is_unsupported_filter(std::string_view name);

// By what they work on.
std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> number_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();

/// A key of Jinja's filters: "a.b.0" reaches into items step by step; None is the item itself.
class AttributeGetter {
 public:
  /// Of strings without their case where `ignore_case`. `otherwise` stands for what is undefined; missing: nothing
  /// does.
  AttributeGetter(Runtime& runtime, const Value& attribute, bool ignore_case = false,
                  Value otherwise = Value::missing());
  Value operator()(Runtime& runtime, Value item) const;

 private:
  std::vector<Value> steps_;
  bool ignore_case_;
  Value otherwise_;
};

}  // namespace lathe::jinja
