#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/template/values/object.h"

/// Attribute, element and slice access.
///
/// Iteration over values, and their lengths.
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

/// Returns Python's iter(value); null if the value is not iterable.
Iterator* try_iterate(Runtime& runtime, const Value& value);
/// Returns the same. Throws Failure [template_operation] if the value is not iterable.
Iterator* iterate(Runtime& runtime, const Value& value);
/// Returns Python's reversed(value). Throws Failure [template_operation].
Iterator* iterate_backwards(Runtime& runtime, const Value& value);

/// Return all values of an iteration.
std::vector<Value> collect(Runtime& runtime, Iterator* items);
std::vector<Value> collect(Runtime& runtime, const Value& iterable);

/// Returns Python's len(value). Throws Failure [template_operation] if the value has no length.
std::int64_t length_of(Runtime& runtime, const Value& value);

/// The numbers from `start` up to, not including, `stop`, `step` apart.
class Range final : public Object {
 public:
  Range(std::int64_t start, std::int64_t stop, std::int64_t step);
  std::int64_t count() const { return count_; }
  std::int64_t at(std::int64_t i) const;
  /// Returns the `count` numbers at positions start, start + step, ... of this range.
  Range* part(Runtime& runtime, std::int64_t start, std::int64_t step, std::int64_t count) const;

  std::string_view type_name() const override { return "range"; }
  Value element(Runtime&, const Value& index) override;
  std::optional<std::int64_t> length(Runtime&) override { return count_; }
  Iterator* iterate(Runtime& runtime) override;
  Iterator* iterate_backwards(Runtime& runtime) override;
  bool equals(const Object& other) const override;
  std::string repr(Runtime&, int depth) override;

 private:
  std::int64_t start_, stop_, step_, count_;
};

/// dict.keys(), dict.values(), dict.items().
class DictView final : public Object {
 public:
  enum class What : std::uint8_t { keys, values, items };
  /// `dict` is a dict.
  DictView(Value dict, What what) : dict_(std::move(dict)), what_(what) {}

  std::string_view type_name() const override;
  std::optional<std::int64_t> length(Runtime&) override;
  Iterator* iterate(Runtime& runtime) override;
  Iterator* iterate_backwards(Runtime& runtime) override;
  std::string repr(Runtime& runtime, int depth) override;

 private:
  Value dict_;
  What what_;
};

/// Returns whether `index` is within `size`; negative indices count from the end. If so, makes `index` nonnegative.
bool resolve_index(std::int64_t& index, std::int64_t size);

}  // namespace lathe::jinja
