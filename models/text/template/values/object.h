#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/error.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

class Iterator;
class LoopRecorder;
class Runtime;

/// An expression of a template cannot be evaluated. The interpreter adds the location (TemplateError).
///   [template_raise]        the template called raise_exception
///  [template_undefined]    use of something that is not defined
///  [template_operation]    Python raises TypeError, ValueError, ZeroDivisionError, ...
///  [template_unsafe]       the sandbox forbids it: changing lists and dicts, names with underscores
///  [template_limit]        too much work, output or depth, or too large a number
///  [template_unsupported]  Jinja or Python supports it, this subset does not
class Failure : public UserError {
 public:
  Failure(const std::string& message, std::string_view label, std::string_view hint = {})
      : Failure(Short{shortened(message)}, label, hint) {}
  /// Returns the message in Jinja's or Python's words; only the start of a long one.
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  struct Short {
    std::string text;
  };
  Failure(const Short& message, std::string_view label, std::string_view hint)
      : UserError(message.text, label, hint), message_(message.text), hint_(hint) {}

  static std::string shortened(const std::string& message) {
    constexpr std::size_t longest = 2000;
    if (message.size() <= longest) return message;
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
    return message.substr(0, end) + "... (" + std::to_string(message.size()) + " bytes)";
  }

  std::string message_, hint_;
};

[[noreturn]] inline void fail_operation(const std::string& message) { throw Failure(message, "template_operation"); }
[[noreturn]] inline void fail_unsafe(const std::string& message) {
  throw Failure(
      message, "template_unsafe",
      "templates cannot modify values or read private names: build a new value, as in {% set l = l + [x] %}");
}
[[noreturn]] inline void fail_unsupported(const std::string& message) {
  throw Failure(message, "template_unsupported", "docs/chat-templates.md lists what templates may use");
}
[[noreturn]] inline void fail_undefined(const std::string& message) {
  throw Failure(message, "template_undefined",
                "pass it as a variable, or ask `is defined` before, or give a default: {{ x | default('') }}");
}
[[noreturn]] inline void fail_limit(const std::string& message, std::string_view hint = {}) {
  throw Failure(message, "template_limit", hint);
}

/// Work limit of a render, so that no template runs forever or exhausts memory. One unit is about one byte written or
/// 16 bytes read; each operation and each object costs a few units.
class Budget {
 public:
  explicit Budget(std::uint64_t work) : work_(work), left_(work) {}

  /// Throws Failure [template_limit] if less than `work` is left.
  void spend(std::uint64_t work) {
    if (work > left_)
      fail_limit("the template does more work than a render may", "RenderLimits::work sets how much that is");
    left_ -= work;
  }
  /// Spends the work of operations that are skipped because their result is known.
  void spend_skipped(std::uint64_t work) {
    spend(work);
    skipped_ += work;
  }
  std::uint64_t spent() const { return work_ - left_; }
  /// Returns the work spent, without skipped work.
  std::uint64_t done() const { return spent() - skipped_; }
  void spend_reading(std::uint64_t bytes) { spend(1 + bytes / 16); }
  /// Spends the work of a search for `wanted` bytes in `bytes`. Searches for long texts are slow in the worst case.
  void spend_searching(std::uint64_t bytes, std::uint64_t wanted) {
    spend(1 + (wanted <= 16 ? bytes / 4 : wanted <= 256 ? bytes : 4 * bytes));
  }

 private:
  std::uint64_t work_, left_, skipped_ = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  bool empty() const { return positional.empty() && named.empty(); }
};

/// A value with its own behavior: a namespace, a loop, a range, a function. A render owns its objects.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// Returns Python's name of the type.
  virtual std::string_view type_name() const = 0;
  /// Returns the attribute `name`; missing if it does not exist.
  virtual Value attribute(Runtime&, std::string_view) { return Value::missing(); }
  /// Returns the element at `index`; missing if it does not exist or the object has no elements.
  virtual Value element(Runtime&, const Value& /*index*/) { return Value::missing(); }
  /// Returns Python's len(); nullopt if the object has no length.
  virtual std::optional<std::int64_t> length(Runtime&) { return std::nullopt; }
  /// Returns an iterator; null if the object is not iterable.
  virtual Iterator* iterate(Runtime&) { return nullptr; }
  /// Returns an iterator in reverse order; null if the object does not support it.
  virtual Iterator* iterate_backwards(Runtime&) { return nullptr; }
  virtual bool callable() const { return false; }
  virtual Value call(Runtime&, const Arguments&);
  virtual bool equals(const Object& other) const { return this == &other; }
  virtual bool truth(Runtime& runtime) { return length(runtime).value_or(1) != 0; }
  /// Returns Python's repr(). `depth` is the number of values that enclose this one.
  virtual std::string repr(Runtime&, int depth);
};

/// Iterates over values once, front to back, and computes each on demand.
class Iterator : public Object {
 public:
  std::string_view type_name() const override { return "generator"; }
  Iterator* iterate(Runtime&) override { return this; }
  /// Returns the next value; missing at the end and from then on. Throws Failure [template_limit] if iterators that
  /// read other iterators nest too deeply.
  Value next(Runtime& runtime);
  /// Skips `count` values. At least as many must be left.
  virtual void skip(Runtime& runtime, std::size_t count) {
    while (count-- > 0) next(runtime);
  }

 private:
  virtual Value advance(Runtime&) = 0;
};

/// Objects, work budget, depth limit and clock of one render.
class Runtime {
 public:
  /// `work` is the work budget; `depth` limits deeper().
  Runtime(std::uint64_t work, int depth, std::optional<std::tm> now = {})
      : budget_(work), most_levels_(depth), now_(now) {}

  /// Counts one nesting level (expression, block, macro, iteration) while it lives.
  class Level {
   public:
    explicit Level(int& levels) : levels_(levels) { ++levels_; }
    ~Level() { --levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& levels_;
  };
  /// Enters one level. Throws Failure [template_limit] at the depth limit.
  Level deeper();

  Budget& budget() { return budget_; }
  /// Returns the time that templates see; nullopt for the clock's time.
  const std::optional<std::tm>& now() const { return now_; }
  void spend(std::uint64_t work) { budget_.spend(work); }

  /// Returns the recorder of the current loop (models/text/template/partial/loop_recorder.h); null if it is not
  /// recorded.
  LoopRecorder* recorder() const { return recorder_; }
  void set_recorder(LoopRecorder* recorder) { recorder_ = recorder; }

  /// Returns a new object that lives as long as the render.
  template <class T, class... Args>
  T* make(Args&&... args) {
    spend(sizeof(T));
    return keep(std::make_unique<T>(std::forward<Args>(args)...));
  }
  /// Takes ownership of an object without spending work.
  template <class T>
  T* keep(std::unique_ptr<T> object) {
    T* kept = object.get();
    objects_.push_back(std::move(object));
    return kept;
  }

 private:
  Budget budget_;
  LoopRecorder* recorder_ = nullptr;
  int levels_ = 0, most_levels_;
  std::optional<std::tm> now_;
  std::vector<std::unique_ptr<Object>> objects_;
};

/// Adds the work of a render to a sum at its end, also if the render fails.
class WorkMeter {
 public:
  WorkMeter(Runtime& runtime, std::uint64_t& sum) : runtime_(runtime), sum_(sum) {}
  ~WorkMeter() { sum_ += runtime_.budget().done(); }
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

 private:
  Runtime& runtime_;
  std::uint64_t& sum_;
};

inline Value Iterator::next(Runtime& runtime) {
  const Runtime::Level level = runtime.deeper();
  return advance(runtime);
}

}  // namespace lathe::jinja
