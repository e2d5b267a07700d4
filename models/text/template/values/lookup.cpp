#include "models/text/template/values/lookup.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/library/methods.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/list_view.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/sequences.h"

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
    const std::size_t at = starts[static_cast<std::size_t>(steps.start + i * steps.step)];
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
    for (std::int64_t i = 0; i < steps.count; ++i)
      part.push_back(items[static_cast<std::size_t>(steps.start + i * steps.step)]);
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

}  // namespace lathe::jinja
