#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

/// The arguments of a filter, test, method or function, bound to its parameters as Python binds them.
class Bound {
 public:
  /// `parameters` are names in order; one that ends in '?' may be left out. Failure [template_operation] for
  /// arguments that are missing, unknown or too many.
  Bound(std::string_view function, const Arguments& given, std::initializer_list<std::string_view> parameters);

  /// Missing where it was left out.
  const Value& operator[](std::size_t i) const { return values_[i]; }
  bool has(std::size_t i) const { return !values_[i].is_missing(); }
  /// Given, and not None.
  bool is_set(std::size_t i) const { return has(i) && !values_[i].is_none(); }
  Value get(std::size_t i, Value otherwise) const {
    if (has(i)) return values_[i];
    return otherwise;
  }
  /// Failure [template_operation] for what is no integer.
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool flag(Runtime& runtime, std::size_t i, bool otherwise) const;
  /// Failure [template_operation] for what is no string.
  const std::string& string(std::size_t i) const;

 private:
  std::vector<Value> values_;
};

}  // namespace lathe::jinja
