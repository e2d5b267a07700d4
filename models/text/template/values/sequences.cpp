#include "models/text/template/values/sequences.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/library/library.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

namespace {

Value code_point_of(Runtime& runtime, const Text& text, std::int64_t index) {
  runtime.budget().spend_reading(text.bytes.size());
  if (!resolve_index(index, count_code_points(text.bytes))) return Value::missing();
  const std::size_t at = byte_of_code_point(text.bytes, index);
  return {text.bytes.substr(at, code_point_size(text.bytes, at)), text.safe};
}

Value not_there(Runtime& runtime, const Value& value, std::string_view name) {
  runtime.spend(name.size());
  return Value::undefined(fmt::format("{} has no attribute {}", string_repr(described(value)), string_repr(name)));
}

/// Returns a bound or step of a slice; nullopt for None.
std::optional<std::int64_t> slice_number(const Value& value) {
  if (value.is_none() || value.is_missing()) return std::nullopt;
  if (!value.is_integer()) fail_operation("slice indices must be integers or None or have an __index__ method");
  return value.integer();
}

Value slice_text(Runtime& runtime, const Text& text, const SliceSteps& steps) {
  runtime.spend(text.bytes.size());
  std::string part;
  if (steps.step == 1) {
    const std::size_t begin = byte_of_code_point(text.bytes, steps.start);
    const std::string_view rest = std::string_view(text.bytes).substr(begin);
    part = rest.substr(0, byte_of_code_point(rest, steps.count));
    return {std::move(part), text.safe};
  }
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.bytes.size(); at += code_point_size(text.bytes, at)) starts.push_back(at);
  for (std::int64_t i = 0; i < steps.count; ++i) {
    const std::size_t at = starts[steps.start + i * steps.step];
    part += text.bytes.substr(at, code_point_size(text.bytes, at));
  }
  return {std::move(part), text.safe};
}

}  // namespace

SliceSteps slice_steps(const Value& start, const Value& stop, const Value& step, std::int64_t size) {
  const std::int64_t stride = slice_number(step).value_or(1);
  if (stride == 0) fail_operation("slice step cannot be zero");
  const bool forward = stride > 0;
  const std::int64_t lowest = forward ? 0 : -1, highest = forward ? size : size - 1;
  const auto clip = [&](const Value& bound, std::int64_t otherwise) {
    const auto number = slice_number(bound);
    if (!number) return otherwise;
    return std::clamp(*number < 0 ? *number + size : *number, lowest, highest);
  };
  const std::int64_t first = clip(start, forward ? 0 : size - 1), last = clip(stop, forward ? size : -1);
  const std::int64_t span = forward ? last - first : first - last;
  if (span <= 0) return {0, 1, 0};
  const std::uint64_t distance =
      forward ? static_cast<std::uint64_t>(stride) : 0 - static_cast<std::uint64_t>(stride);
  const auto count = static_cast<std::int64_t>((static_cast<std::uint64_t>(span) - 1) / distance + 1);
  return {first, count == 1 ? 1 : stride, count};
}

Value plain_element(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Kind::dict)) {
    if (key.is(Kind::list) || key.is(Kind::dict))
      return Value::missing();  // a TypeError in Python, which Jinja ignores
    const Value* found = value.dict().find(key, runtime.budget());
    return found ? *found : Value::missing();
  }
  if (value.is(Kind::object)) return value.object()->element(runtime, key);
  if (!key.is_integer()) return Value::missing();
  if (value.is_string()) return code_point_of(runtime, value.text(), key.integer());
  if (!value.is_sequence()) return Value::missing();
  std::int64_t index = key.integer();
  if (!resolve_index(index, static_cast<std::int64_t>(value.size()))) return Value::missing();
  return value.item(static_cast<std::size_t>(index));
}

Value attribute_of(Runtime& runtime, const Value& value, std::string_view name) {
  require_defined(value);
  Value found = bound_attribute(runtime, value, name);
  if (found.is_missing() && value.is(Kind::dict))
    if (const Value* there = value.dict().find(name)) return *there;
  return found.is_missing() ? not_there(runtime, value, name) : found;
}

Value element_of(Runtime& runtime, const Value& value, const Value& key) {
  require_defined(value);
  Value found = plain_element(runtime, value, key);
  if (found.is_missing() && key.is_string()) found = bound_attribute(runtime, value, key.string());
  if (!found.is_missing()) return found;
  if (key.is_string()) return not_there(runtime, value, key.string());
  return Value::undefined(fmt::format("{} has no element {}", described(value), repr(runtime, key)));
}

Value slice_of(Runtime& runtime, const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(value);
  if (value.is_string()) {
    runtime.budget().spend_reading(value.string().size());
    return slice_text(runtime, value.text(), slice_steps(start, stop, step, count_code_points(value.string())));
  }
  if (value.is_sequence()) {
    const SliceSteps steps = slice_steps(start, stop, step, static_cast<std::int64_t>(value.size()));
    const std::uint64_t work = static_cast<std::uint64_t>(steps.count) * sizeof(Value);
    if (value.view()) {
      runtime.budget().spend_skipped(work);
      return Value::list(value.view()->slice(steps.start, steps.step, steps.count), value.depth());
    }
    const auto& items = value.items();
    runtime.spend(work);
    std::vector<Value> part;
    for (std::int64_t i = 0; i < steps.count; ++i) part.push_back(items[steps.start + i * steps.step]);
    return value.is(Kind::list) ? Value::list(std::move(part)) : Value::tuple(std::move(part));
  }
  if (value.is(Kind::object))
    if (auto* range = dynamic_cast<Range*>(value.object())) {
      const SliceSteps steps = slice_steps(start, stop, step, range->count());
      return range->part(runtime, steps.start, steps.step, steps.count);
    }
  if (value.is(Kind::dict)) fail_operation("unhashable type: 'slice'");
  fail_operation(fmt::format("'{}' object is not subscriptable", type_name(value)));
}

namespace {

/// Iterates over a list or tuple, forward or backward (reversed(list)).
class ListIterator final : public Iterator {
 public:
  ListIterator(Value list, bool backwards)
      : list_(std::move(list)), at_(backwards ? list_.size() : 0), backwards_(backwards) {}

  std::string_view type_name() const override { return backwards_ ? "list_reverseiterator" : "list_iterator"; }
  void skip(Runtime&, std::size_t count) override { at_ = backwards_ ? at_ - count : at_ + count; }

 private:
  Value advance(Runtime&) override {
    if (backwards_) return at_ == 0 ? Value::missing() : list_.item(--at_);
    return at_ == list_.size() ? Value::missing() : list_.item(at_++);
  }

  Value list_;
  std::size_t at_;
  bool backwards_;
};

class DictIterator final : public Iterator {
 public:
  DictIterator(Value dict, DictView::What what, bool backwards)
      : dict_(std::move(dict)), what_(what), backwards_(backwards) {}

  std::string_view type_name() const override { return "dict_keyiterator"; }

 private:
  Value advance(Runtime&) override {
    const auto& items = dict_.dict().items();
    if (at_ == items.size()) return Value::missing();
    const auto& [key, value] = items[backwards_ ? items.size() - 1 - at_ : at_];
    ++at_;
    switch (what_) {
      case DictView::What::keys: return key;
      case DictView::What::values: return value;
      case DictView::What::items: return Value::tuple({key, value});
    }
    return Value::missing();
  }

  Value dict_;
  DictView::What what_;
  bool backwards_;
  std::size_t at_ = 0;
};

class StringIterator final : public Iterator {
 public:
  explicit StringIterator(Value text) : text_(std::move(text)) {}
  std::string_view type_name() const override { return "str_ascii_iterator"; }

 private:
  Value advance(Runtime&) override {
    const std::string& bytes = text_.string();
    if (at_ == bytes.size()) return Value::missing();
    const std::size_t size = code_point_size(bytes, at_);
    at_ += size;
    return bytes.substr(at_ - size, size);
  }

  Value text_;
  std::size_t at_ = 0;
};

class RangeIterator final : public Iterator {
 public:
  RangeIterator(const Range& range, bool backwards) : range_(&range), backwards_(backwards) {}
  std::string_view type_name() const override { return "range_iterator"; }

 private:
  Value advance(Runtime&) override {
    if (at_ == range_->count()) return Value::missing();
    const std::int64_t i = at_++;
    return range_->at(backwards_ ? range_->count() - 1 - i : i);
  }

  const Range* range_;
  bool backwards_;
  std::int64_t at_ = 0;
};

const Value& empty_list() {
  static const Value empty = Value::list({});
  return empty;
}

/// Returns the code points of a string in reverse order.
Value backwards(Runtime& runtime, const Value& text) {
  std::vector<Value> points = collect(runtime, text);
  return Value::list({points.rbegin(), points.rend()});
}

std::int64_t count_steps(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // Unsigned arithmetic, because differences may overflow i64.
  const auto low = static_cast<std::uint64_t>(std::min(start, stop)),
             high = static_cast<std::uint64_t>(std::max(start, stop));
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (high - low - 1) / stride;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX - 1)) + 1;
}

}  // namespace

Iterator* try_iterate(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return runtime.make<ListIterator>(empty_list(), false);
    case Kind::string: return runtime.make<StringIterator>(value);
    case Kind::list:
    case Kind::tuple: return runtime.make<ListIterator>(value, false);
    case Kind::dict: return runtime.make<DictIterator>(value, DictView::What::keys, false);
    case Kind::object: return value.object()->iterate(runtime);
    case Kind::none:
    case Kind::missing:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: break;
  }
  return nullptr;
}

Iterator* iterate(Runtime& runtime, const Value& value) {
  Iterator* items = try_iterate(runtime, value);
  if (!items) fail_operation(fmt::format("'{}' object is not iterable", type_name(value)));
  return items;
}

Iterator* iterate_backwards(Runtime& runtime, const Value& value) {
  Iterator* items = nullptr;
  if (value.is_undefined()) items = runtime.make<ListIterator>(empty_list(), true);
  if (value.is_sequence()) items = runtime.make<ListIterator>(value, true);
  if (value.is_string()) items = runtime.make<ListIterator>(backwards(runtime, value), false);
  if (value.is(Kind::dict)) items = runtime.make<DictIterator>(value, DictView::What::keys, true);
  if (value.is(Kind::object)) items = value.object()->iterate_backwards(runtime);
  if (!items) fail_operation(fmt::format("'{}' object is not reversible", type_name(value)));
  return items;
}

std::vector<Value> collect(Runtime& runtime, Iterator* items) {
  std::vector<Value> all;
  for (Value next = items->next(runtime); !next.is_missing(); next = items->next(runtime)) {
    runtime.spend(sizeof(Value));
    all.push_back(std::move(next));
  }
  return all;
}

std::vector<Value> collect(Runtime& runtime, const Value& iterable) {
  return collect(runtime, iterate(runtime, iterable));
}

std::int64_t length_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return 0;
    case Kind::string:
      runtime.budget().spend_reading(value.string().size());
      return count_code_points(value.string());
    case Kind::list:
    case Kind::tuple: return static_cast<std::int64_t>(value.size());
    case Kind::dict: return static_cast<std::int64_t>(value.dict().size());
    case Kind::object:
      if (const auto length = value.object()->length(runtime)) return *length;
      break;
    case Kind::none:
    case Kind::missing:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: break;
  }
  fail_operation(fmt::format("object of type '{}' has no len()", type_name(value)));
}

Range::Range(std::int64_t start, std::int64_t stop, std::int64_t step)
    : start_(start), stop_(stop), step_(step), count_(count_steps(start, stop, step)) {}

std::int64_t Range::at(std::int64_t i) const {
  // Unsigned arithmetic, because the end of a range may not fit into 64 bits.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_) +
                                   static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step_));
}

Range* Range::part(Runtime& runtime, std::int64_t start, std::int64_t step, std::int64_t count) const {
  std::int64_t stride = 0;
  if (__builtin_mul_overflow(step_, step, &stride)) fail_limit("an integer is beyond 64 bits");
  return runtime.make<Range>(at(start), at(start + count * step), stride);
}

Value Range::element(Runtime&, const Value& index) {
  if (!index.is_integer()) return Value::missing();
  std::int64_t i = index.integer();
  return resolve_index(i, count_) ? Value(at(i)) : Value::missing();
}

Iterator* Range::iterate(Runtime& runtime) { return runtime.make<RangeIterator>(*this, false); }
Iterator* Range::iterate_backwards(Runtime& runtime) { return runtime.make<RangeIterator>(*this, true); }

bool Range::equals(const Object& other) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  return range && count_ == range->count_ && (count_ == 0 || start_ == range->start_) &&
         (count_ <= 1 || step_ == range->step_);
}

std::string Range::repr(Runtime&, int) {
  return step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                    : fmt::format("range({}, {}, {})", start_, stop_, step_);
}

std::string_view DictView::type_name() const {
  switch (what_) {
    case What::keys: return "dict_keys";
    case What::values: return "dict_values";
    case What::items: return "dict_items";
  }
  return {};
}

std::optional<std::int64_t> DictView::length(Runtime&) { return static_cast<std::int64_t>(dict_.dict().size()); }
Iterator* DictView::iterate(Runtime& runtime) { return runtime.make<DictIterator>(dict_, what_, false); }
Iterator* DictView::iterate_backwards(Runtime& runtime) { return runtime.make<DictIterator>(dict_, what_, true); }

std::string DictView::repr(Runtime& runtime, int depth) {
  const Value items = Value::list(collect(runtime, iterate(runtime)));
  return fmt::format("{}({})", type_name(), jinja::repr(runtime, items, depth + 1));
}

bool resolve_index(std::int64_t& index, std::int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size;
}

}  // namespace lathe::jinja
