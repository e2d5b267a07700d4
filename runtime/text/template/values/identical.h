#pragma once

#include "runtime/text/template/values/value.h"

namespace lathe::jinja {

/// Returns whetherno template can observe a difference between two values: they have the same types and contents.
/// False for objects, unless the same list or dict holds them; false for views of lists, unless they have the same
/// items of the same list.
bool identical(const Value& a, const Value& b);

/// Returns whether an object is in the value.
bool holds_object(const Value& value);

}  // namespace lathe::jinja
