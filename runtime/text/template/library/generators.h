#pragma once

#include <functional>

#include "runtime/text/template/values/object.h"

/// Iterations that compute their values when these are asked for, as Python's generators do: faults show then too.
namespace lathe::jinja {

/// `start` gives the iteration, when the first value is asked for.
Iterator* make_generator(Runtime& runtime, std::function<Iterator*(Runtime&)> start);
/// The values of `items` for which `keep` holds.
Iterator* make_filtered(Runtime& runtime, Iterator* items, std::function<bool(Runtime&, const Value&)> keep);
/// `change` of each value of `items`.
Iterator* make_mapped(Runtime& runtime, Iterator* items, std::function<Value(Runtime&, const Value&)> change);

}  // namespace lathe::jinja
