#pragma once

#include <ctime>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/values/object.h"

/// Lazy iterators, like Python's generators. Errors also occur only when a value is requested.
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

/// Returns C's strftime with English names, independent of the locale. Supports %a %A %b %B %c %d %D %e %F %H %I %j
/// %m %M %n %p %S %t %T %u %w %x %X %y %Y %% and glibc's %-d for numbers without padding. Throws Failure
/// [template_unsupported] for other letters.
std::string format_time(std::string_view format, const std::tm& time);

std::tm local_time();

/// namespace(..): the only value with assignable attributes.
class Namespace final : public Object {
 public:
  /// Throws Failure [template_unsafe] for names that start with an underscore.
  void set(const std::string& name, Value value);
  const std::vector<Dict::Item>& attributes() const { return attributes_.items(); }
  /// Returns the attribute of that name, or null.
  const Value* find(std::string_view name) const { return attributes_.find(name); }

  std::string_view type_name() const override { return "Namespace"; }
  Value attribute(Runtime&, std::string_view name) override;
  std::string repr(Runtime& runtime, int depth) override;

 private:
  DictBuilder attributes_;
};

/// Calls `start` for the underlying iterator when the first value is requested.
Iterator* make_generator(Runtime& runtime, std::function<Iterator*(Runtime&)> start);
/// Returns the values of `items` for which `keep` returns true.
Iterator* make_filtered(Runtime& runtime, Iterator* items, std::function<bool(Runtime&, const Value&)> keep);
/// Applies `change` to each value of `items`.
Iterator* make_mapped(Runtime& runtime, Iterator* items, std::function<Value(Runtime&, const Value&)> change);

/// A built-in function.
class NativeFunction final : public Object {
 public:
  using Action = std::function<Value(Runtime&, const Arguments&)>;
  NativeFunction(std::string_view name, Action action) : name_(name), action_(std::move(action)) {}

  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& given) override { return action_(runtime, given); }
  std::string repr(Runtime&, int depth) override;

 private:
  std::string name_;
  Action action_;
};

/// Returns a new object for a standard function: range, dict, namespace, cycler, joiner, raise_exception,
/// strftime_now. Returns missing for other names.
Value make_function(Runtime& runtime, std::string_view name);

}  // namespace lathe::jinja
