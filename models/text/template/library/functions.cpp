#include "models/text/template/library/functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/values/object.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

namespace lathe::jinja {

namespace {
std::string_view plain(std::string_view parameter) {
  return parameter.ends_with('?') ? parameter.substr(0, parameter.size() - 1) : parameter;
}
}  // namespace

Bound::Bound(std::string_view function, const Arguments& given, std::initializer_list<std::string_view> parameters)
    : values_(parameters.size(), Value::missing()) {
  if (parameters.size() == 0 && !given.empty()) fail_operation(fmt::format("{} takes no arguments", function));
  if (given.positional.size() > parameters.size())
    fail_operation(fmt::format("{}() takes at most {} arguments ({} given)", function, parameters.size(),
                               given.positional.size()));
  std::copy(given.positional.begin(), given.positional.end(), values_.begin());
  for (const auto& [name, value] : given.named) {
    const auto* const at = std::find_if(parameters.begin(), parameters.end(),
                                        [&](std::string_view parameter) { return plain(parameter) == name; });
    if (at == parameters.end())
      fail_operation(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    Value& slot = values_[at - parameters.begin()];
    if (!slot.is_missing()) fail_operation(fmt::format("{}() got multiple values for argument '{}'", function, name));
    slot = value;
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::string_view parameter = parameters.begin()[i];
    if (values_[i].is_missing() && !parameter.ends_with('?'))
      fail_operation(fmt::format("{}() is missing its argument '{}'", function, parameter));
  }
}

std::int64_t Bound::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(values_[i]);
  if (!values_[i].is_integer())
    fail_operation(fmt::format("'{}' object cannot be interpreted as an integer", type_name(values_[i])));
  return values_[i].integer();
}

bool Bound::flag(Runtime& runtime, std::size_t i, bool otherwise) const {
  return has(i) ? truth(runtime, values_[i]) : otherwise;
}

const std::string& Bound::string(std::size_t i) const {
  if (!values_[i].is_string()) fail_operation(fmt::format("must be str, not {}", type_name(values_[i])));
  return values_[i].string();
}

namespace {

constexpr std::array days{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array months{"January", "February", "March",     "April",   "May",      "June",
                            "July",    "August",   "September", "October", "November", "December"};

template <std::size_t size>
std::string name_of(const std::array<const char*, size>& names, int index) {
  return index >= 0 && static_cast<std::size_t>(index) < size ? names[index] : "?";
}

std::string padded(int number, int width, bool plain, char fill = '0') {
  if (plain) return fmt::format("{}", number);
  return fill == '0' ? fmt::format("{:0{}}", number, width) : fmt::format("{:{}}", number, width);
}

std::string field(char letter, bool plain, const std::tm& time) {
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  switch (letter) {
    case 'a': return name_of(days, time.tm_wday).substr(0, 3);
    case 'A': return name_of(days, time.tm_wday);
    case 'b':
    case 'h': return name_of(months, time.tm_mon).substr(0, 3);
    case 'B': return name_of(months, time.tm_mon);
    case 'c': return format_time("%a %b %e %H:%M:%S %Y", time);
    case 'd': return padded(time.tm_mday, 2, plain);
    case 'D':
    case 'x': return format_time("%m/%d/%y", time);
    case 'e': return padded(time.tm_mday, 2, plain, ' ');
    case 'F': return format_time("%Y-%m-%d", time);
    case 'H': return padded(time.tm_hour, 2, plain);
    case 'I': return padded(hour12, 2, plain);
    case 'j': return padded(time.tm_yday + 1, 3, plain);
    case 'm': return padded(time.tm_mon + 1, 2, plain);
    case 'M': return padded(time.tm_min, 2, plain);
    case 'n': return "\n";
    case 'p': return time.tm_hour < 12 ? "AM" : "PM";
    case 'S': return padded(time.tm_sec, 2, plain);
    case 't': return "\t";
    case 'T':
    case 'X': return format_time("%H:%M:%S", time);
    case 'u': return padded(time.tm_wday == 0 ? 7 : time.tm_wday, 1, plain);
    case 'w': return padded(time.tm_wday, 1, plain);
    case 'y': return padded((time.tm_year + 1900) % 100, 2, plain);
    case 'Y': return padded(time.tm_year + 1900, 4, plain);
    case '%': return "%";
    default: fail_unsupported(fmt::format("the date format %{} is not supported", letter));
  }
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  std::string text;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      text += format[at];
      continue;
    }
    const bool plain = at + 1 < format.size() && format[at + 1] == '-';
    at += plain ? 2 : 1;
    if (at >= format.size()) fail_unsupported("a date format ends in %");
    text += field(format[at], plain, time);
  }
  return text;
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  localtime_r(&now, &time);
  return time;
}

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_'))
    fail_unsafe(
        fmt::format("Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. "
                    "Please rename the attribute.",
                    string_repr(name)));
  attributes_.set(name, std::move(value));
}

Value Namespace::attribute(Runtime& runtime, std::string_view name) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->read_attribute(*this, name);
  const Value* there = attributes_.find(name);
  return there ? *there : Value::missing();
}

std::string Namespace::repr(Runtime& runtime, int depth) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->give_up();
  std::string text = "<Namespace {", separator;
  for (const auto& [name, value] : attributes_.items()) {
    text += separator + fmt::format("{}: {}", string_repr(name.string()), jinja::repr(runtime, value, depth + 1));
    separator = ", ";
  }
  return text + "}>";
}

namespace {

class Generator final : public Iterator {
 public:
  explicit Generator(std::function<Iterator*(Runtime&)> start) : start_(std::move(start)) {}

 private:
  Value advance(Runtime& runtime) override {
    if (!items_) items_ = start_(runtime);
    return items_->next(runtime);
  }

  std::function<Iterator*(Runtime&)> start_;
  Iterator* items_ = nullptr;
};

class Filtered final : public Iterator {
 public:
  Filtered(Iterator* items, std::function<bool(Runtime&, const Value&)> keep)
      : items_(items), keep_(std::move(keep)) {}

 private:
  Value advance(Runtime& runtime) override {
    Value item = items_->next(runtime);
    for (; !item.is_missing() && !keep_(runtime, item); item = items_->next(runtime)) runtime.spend(4);
    return item;
  }

  Iterator* items_;
  std::function<bool(Runtime&, const Value&)> keep_;
};

class Mapped final : public Iterator {
 public:
  Mapped(Iterator* items, std::function<Value(Runtime&, const Value&)> change)
      : items_(items), change_(std::move(change)) {}

 private:
  Value advance(Runtime& runtime) override {
    runtime.spend(4);
    Value item = items_->next(runtime);
    return item.is_missing() ? item : change_(runtime, item);
  }

  Iterator* items_;
  std::function<Value(Runtime&, const Value&)> change_;
};

}  // namespace

Iterator* make_generator(Runtime& runtime, std::function<Iterator*(Runtime&)> start) {
  return runtime.make<Generator>(std::move(start));
}
Iterator* make_filtered(Runtime& runtime, Iterator* items, std::function<bool(Runtime&, const Value&)> keep) {
  return runtime.make<Filtered>(items, std::move(keep));
}
Iterator* make_mapped(Runtime& runtime, Iterator* items, std::function<Value(Runtime&, const Value&)> change) {
  return runtime.make<Mapped>(items, std::move(change));
}

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
