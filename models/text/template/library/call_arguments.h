#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

/// Arguments of a filter, test, method or function, bound to its parameters as in Python.
class Bound {
 public:
  /// `parameters` are the names in order; names that end in '?' are optional. Throws Failure [template_operation] for
  /// missing, unknown or too many arguments.
  Bound(std::string_view function, const Arguments& given, std::initializer_list<std::string_view> parameters);

  /// Returns the argument; missing if it was not passed.
  const Value& operator[](std::size_t i) const { return values_[i]; }
  bool has(std::size_t i) const { return !values_[i].is_missing(); }
  /// Returns whether the argument was passed and is not None.
  bool is_set(std::size_t i) const { return has(i) && !values_[i].is_none(); }
  Value get(std::size_t i, Value otherwise) const {
    if (has(i)) return values_[i];
    return otherwise;
  }
  /// Throws Failure [template_operation] if the argument is not an integer.
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool flag(Runtime& runtime, std::size_t i, bool otherwise) const;
  /// Throws Failure [template_operation] if the argument is not a string.
  const std::string& string(std::size_t i) const;

 private:
  std::vector<Value> values_;
};

}  // namespace lathe::jinja
