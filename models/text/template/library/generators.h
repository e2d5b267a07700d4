#pragma once

#include <functional>

#include "models/text/template/values/object.h"

/// Lazy iterators, like Python's generators. Errors also occur only when a value is requested.
namespace lathe::jinja {

/// Calls `start` for the underlying iterator when the first value is requested.
Iterator* make_generator(Runtime& runtime, std::function<Iterator*(Runtime&)> start);
/// Returns the values of `items` for which `keep` returns true.
Iterator* make_filtered(Runtime& runtime, Iterator* items, std::function<bool(Runtime&, const Value&)> keep);
/// Applies `change` to each value of `items`.
Iterator* make_mapped(Runtime& runtime, Iterator* items, std::function<Value(Runtime&, const Value&)> change);

}  // namespace lathe::jinja
