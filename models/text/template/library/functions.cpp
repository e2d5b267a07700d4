#include "models/text/template/library/functions.h"

#include <fmt/core.h>

#include <map>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/namespace.h"
#include "models/text/template/library/strftime.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/sequences.h"

namespace lathe::jinja {

namespace {

/// cycler(..): returns its values cyclically.
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  Value attribute(Runtime& runtime, std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name == "next")
      return runtime.make<NativeFunction>("next", [this](Runtime&, const Arguments&) {
        const std::size_t now = std::exchange(at_, (at_ + 1) % items_.size());
        return items_[now];
      });
    if (name == "reset")
      return runtime.make<NativeFunction>("reset", [this](Runtime&, const Arguments&) {
        at_ = 0;
        return Value();
      });
    return Value::missing();
  }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

/// joiner(separator): returns "" at the first call and then the separator.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments&) override { return std::exchange(used_, true) ? separator_ : Value(""); }
  Value attribute(Runtime&, std::string_view name) override {
    if (name == "sep") return separator_;
    return name == "used" ? Value(used_) : Value::missing();
  }

 private:
  Value separator_;
  bool used_ = false;
};

/// Calls set(key, value) for each entry of Python's dict(*args, **kwargs).
template <class Set>
void for_each_entry(Runtime& runtime, std::string_view function, const Arguments& given, const Set& set) {
  if (given.positional.size() > 1)
    fail_operation(fmt::format("{} expected at most 1 argument, got {}", function, given.positional.size()));
  for (const Value& source : given.positional) {
    if (source.is(Kind::dict)) {
      for (const auto& [key, value] : source.dict().items()) set(key, value);
      continue;
    }
    std::size_t number = 0;
    for (const Value& pair : collect(runtime, source)) {
      Iterator* items = try_iterate(runtime, pair);
      if (!items)
        fail_operation(fmt::format("cannot convert dictionary update sequence element #{} to a sequence", number));
      const std::vector<Value> both = collect(runtime, items);
      if (both.size() != 2)
        fail_operation(
            fmt::format("dictionary update sequence element #{} has length {}; 2 is required", number, both.size()));
      set(both[0], both[1]);
      ++number;
    }
  }
  for (const auto& [name, value] : given.named) set(Value(name), value);
}

Value make_dict(Runtime& runtime, const Arguments& given) {
  DictBuilder builder;
  for_each_entry(runtime, "dict", given, [&](const Value& key, const Value& value) {
    runtime.spend(2 * sizeof(Value));
    builder.set(key, value, runtime.budget());
  });
  return std::move(builder).finish();
}

Value make_namespace(Runtime& runtime, const Arguments& given) {
  auto* space = runtime.make<Namespace>();
  for_each_entry(runtime, "namespace", given, [&](const Value& key, const Value& value) {
    runtime.spend(2 * sizeof(Value));
    space->set(key.is_string() ? key.string() : repr(runtime, key), value);
  });
  return space;
}

Value make_range(Runtime& runtime, const Arguments& given) {
  constexpr std::int64_t longest = 100000;
  if (!given.named.empty()) fail_operation("range() takes no keyword arguments");
  if (given.positional.empty()) fail_operation("range expected at least 1 argument, got 0");
  const Bound bound("range", given, {"start", "stop?", "step?"});
  const std::int64_t first = bound.integer(0, 0), second = bound.integer(1, 0), step = bound.integer(2, 1);
  if (step == 0) fail_operation("range() arg 3 must not be zero");
  const Range range = bound.has(1) ? Range(first, second, step) : Range(0, first, 1);
  if (range.count() > longest)
    fail_operation(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", longest));
  return bound.has(1) ? runtime.make<Range>(first, second, step) : runtime.make<Range>(0, first, 1);
}

Value make_cycler(Runtime& runtime, const Arguments& given) {
  if (given.positional.empty()) fail_operation("at least one item has to be provided");
  return runtime.make<Cycler>(given.positional);
}

Value make_joiner(Runtime& runtime, const Arguments& given) {
  return runtime.make<Joiner>(Bound("joiner", given, {"sep?"}).get(0, ", "));
}

Value raise_exception(Runtime& runtime, const Arguments& given) {
  throw Failure(to_text(runtime, Bound("raise_exception", given, {"message"})[0]), "template_raise");
}

Value strftime_now(Runtime& runtime, const Arguments& given) {
  const Bound bound("strftime_now", given, {"format"});
  const std::string text = format_time(bound.string(0), runtime.now().value_or(local_time()));
  runtime.spend(text.size());
  return text;
}

}  // namespace

std::string NativeFunction::repr(Runtime&, int) { return fmt::format("<function {}>", name_); }

Value make_function(Runtime& runtime, std::string_view name) {
  static const std::map<std::string_view, Value (*)(Runtime&, const Arguments&)> functions{
      {"cycler", make_cycler},       {"dict", make_dict},   {"joiner", make_joiner},
      {"namespace", make_namespace}, {"range", make_range}, {"raise_exception", raise_exception},
      {"strftime_now", strftime_now}};
  const auto at = functions.find(name);
  if (at == functions.end()) return Value::missing();
  // Each render creates a function once. That costs no work units, because an iteration's work must not depend on
  // earlier ones.
  return runtime.keep(std::make_unique<NativeFunction>(name, at->second));
}

}  // namespace lathe::jinja
