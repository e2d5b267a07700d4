#pragma once

#include <cstdint>
#include <vector>

#include "runtime/text/template/values/object.h"

/// Values that hold values: what can be iterated, and how long it is.
namespace lathe::jinja {

/// Python's iter(value); null for what cannot be iterated.
Iterator* try_iterate(Runtime& runtime, const Value& value);
/// The same, but Failure [template_operation] for what cannot.
Iterator* iterate(Runtime& runtime, const Value& value);
/// Python's reversed(value). Failure [template_operation].
Iterator* iterate_backwards(Runtime& runtime, const Value& value);

/// All values of an iteration.
std::vector<Value> collect(Runtime& runtime, Iterator* items);
std::vector<Value> collect(Runtime& runtime, const Value& iterable);

/// Python's len(value). Failure [template_operation] for what has none.
std::int64_t length_of(Runtime& runtime, const Value& value);

/// Numbers from `start` on, `step` apart, up to but without `stop`.
class Range final : public Object {
 public:
  Range(std::int64_t start, std::int64_t stop, std::int64_t step);
  std::int64_t count() const { return count_; }
  std::int64_t at(std::int64_t i) const;
  /// The `count` numbers at start, start + step, .. within this range.
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

/// Whether `index`, which may count from the end, lies within `size`; then it is the position from the start.
bool resolve_index(std::int64_t& index, std::int64_t size);

}  // namespace lathe::jinja
