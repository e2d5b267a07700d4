#pragma once

#include <optional>
#include <string_view>

#include "runtime/text/template/values/object.h"

/// How templates reach into values.
namespace lathe::jinja {

/// value.name: a method or an attribute, then the key of that name. Undefined where there is neither.
Value attribute_of(Runtime& runtime, const Value& value, std::string_view name);
/// value[key]: the key or position, then the attribute of that name. Undefined where there is neither.
Value element_of(Runtime& runtime, const Value& value, const Value& key);
/// value[start:stop:step], any of them None. Failure [template_operation].
Value slice_of(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step);

/// The element at `index` of a string, list, tuple or range, or of that key in a dict; missing where there is none.
Value plain_element(Runtime& runtime, const Value& value, const Value& key);

/// Where Python's slice(start, stop, step) begins, how far it steps and how many it takes of `size`.
struct SliceSteps {
  std::int64_t start, step, count;
};
SliceSteps slice_steps(const Value& start, const Value& stop, const Value& step, std::int64_t size);

}  // namespace lathe::jinja
