#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/template/values/budget.h"
#include "runtime/text/template/values/value.h"

namespace lathe::jinja {

class Iterator;
class LoopRecorder;
class Runtime;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  bool empty() const { return positional.empty() && named.empty(); }
};

/// A value with a behaviour of its own: a namespace, a loop, a range, a function. A render owns its objects.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// Python's name of the type.
  virtual std::string_view type_name() const = 0;
  /// The attribute of that name; missing where there is none.
  virtual Value attribute(Runtime&, std::string_view) { return Value::missing(); }
  /// The element at `index`; missing where there is none or where there are no elements.
  virtual Value element(Runtime&, const Value& /*index*/) { return Value::missing(); }
  /// Nothing for what Python's len() does not take.
  virtual std::optional<std::int64_t> length(Runtime&) { return std::nullopt; }
  /// Null for what cannot be iterated.
  virtual Iterator* iterate(Runtime&) { return nullptr; }
  /// Another iteration, backwards; null for what cannot.
  virtual Iterator* iterate_backwards(Runtime&) { return nullptr; }
  virtual bool callable() const { return false; }
  virtual Value call(Runtime&, const Arguments&);
  virtual bool equals(const Object& other) const { return this == &other; }
  virtual bool truth(Runtime& runtime) { return length(runtime).value_or(1) != 0; }
  /// Python's repr(). `depth` counts the values that this one lies in.
  virtual std::string repr(Runtime&, int depth);
};

/// Goes through values once, front to back, and makes each when it is asked for.
class Iterator : public Object {
 public:
  std::string_view type_name() const override { return "generator"; }
  Iterator* iterate(Runtime&) override { return this; }
  /// The next value; missing at the end, and then always. Failure [template_limit] where iterations that go through
  /// each other nest too deep.
  Value next(Runtime& runtime);
  /// Skips values. At least `count` must be left.
  virtual void skip(Runtime& runtime, std::size_t count) {
    while (count-- > 0) next(runtime);
  }

 private:
  virtual Value advance(Runtime&) = 0;
};

/// What one render owns, spends and may know.
class Runtime {
 public:
  /// `work` is for the budget, `depth` for deeper().
  Runtime(std::uint64_t work, int depth, std::optional<std::tm> now = {})
      : budget_(work), most_levels_(depth), now_(now) {}

  /// One level of what runs within each other (expressions, blocks, macros, iterations), for as long as it lives.
  class Level {
   public:
    explicit Level(int& levels) : levels_(levels) { ++levels_; }
    ~Level() { --levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& levels_;
  };
  /// Failure [template_limit].
  Level deeper();

  Budget& budget() { return budget_; }
  /// The time to tell; nothing for that of the clock.
  const std::optional<std::tm>& now() const { return now_; }
  void spend(std::uint64_t work) { budget_.spend(work); }

  /// The recorder of the loop that runs, if it is recorded (runtime/text/template/partial/loop_recorder.h); otherwise
  /// null.
  LoopRecorder* recorder() const { return recorder_; }
  void set_recorder(LoopRecorder* recorder) { recorder_ = recorder; }

  /// A new object, which lives as long as the render.
  template <class T, class... Args>
  T* make(Args&&... args) {
    spend(sizeof(T));
    return keep(std::make_unique<T>(std::forward<Args>(args)...));
  }
  /// Takes an object that does not count as work.
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

/// Adds the work of a render to a sum at its end, also if it fails.
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
