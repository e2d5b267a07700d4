#pragma once

#include "models/text/template/values/value.h"

namespace lathe::jinja {

/// Returns whether no template can observe a difference between two values: they have the same types and contents.
/// Returns false for objects, unless both values share the list or dict that holds them. Returns false for views,
/// unless they have the same items of the same list.
bool identical(const Value& a, const Value& b);

/// Returns whether the value contains an object.
bool holds_object(const Value& value);

}  // namespace lathe::jinja
