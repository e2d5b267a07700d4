#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/template/values/budget.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

class Iterator;
class LoopRecorder;
class Runtime;

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
