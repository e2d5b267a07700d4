#pragma once

#include <optional>
#include <string_view>

#include "models/text/template/values/object.h"

/// Attribute, element and slice access.
namespace lathe::jinja {

/// Returns value.name: a method or an attribute, else the element with that key, else undefined.
Value attribute_of(Runtime& runtime, const Value& value, std::string_view name);
/// Returns value[key]: the element with that key or position, else the attribute of that name, else undefined.
Value element_of(Runtime& runtime, const Value& value, const Value& key);
/// Returns value[start:stop:step]; each bound may be None. Throws Failure [template_operation].
Value slice_of(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step);

/// Returns the element at an index of a string, list, tuple or range, or at a key of a dict; missing if it does not
/// exist.
Value plain_element(Runtime& runtime, const Value& value, const Value& key);

/// Start, step and number of elements of Python's slice(start, stop, step) over `size` elements.
struct SliceSteps {
  std::int64_t start, step, count;
};
SliceSteps slice_steps(const Value& start, const Value& stop, const Value& step, std::int64_t size);

}  // namespace lathe::jinja
