#pragma once

#include "models/text/template/interpreter.h"

namespace lathe::jinja {

/// The variable `loop`.
class Loop final : public Object {
 public:
  /// `iterable` provides the length, if it has one.
  Loop(Iterator* items, Value iterable) : items_(items), iterable_(std::move(iterable)) {}

  /// Advances to the next item. Returns false at the end.
  bool advance(Runtime& runtime);
  const Value& current() const { return current_; }
  /// Skips `count` items. `last` is the last skipped item.
  void skip(Runtime& runtime, std::size_t count, const Value& last);

  std::string_view type_name() const override { return "LoopContext"; }
  Value attribute(Runtime& runtime, std::string_view name) override;
  std::optional<std::int64_t> length(Runtime& runtime) override;
  std::string repr(Runtime& runtime, int depth) override;

 private:
  const Value& peek(Runtime& runtime);
  Value cycle(const Arguments& given) const;
  Value changed(Runtime& runtime, const Arguments& given);

  Iterator* items_;
  Value iterable_;
  std::int64_t index_ = 0;  ///< one-based index of the current item
  std::optional<std::int64_t> length_;
  Value before_ = Value::missing(), current_ = Value::missing(), after_ = Value::missing();
  Value last_changed_ = Value::missing();
};

/// Items of a loop that satisfy its condition, which is evaluated on demand.
class FilteredItems final : public Iterator {
 public:
  FilteredItems(Interpreter& interpreter, const For& loop, FramePtr outer, Iterator* items)
      : interpreter_(interpreter), loop_(loop), outer_(std::move(outer)), items_(items) {}

 private:
  Value advance(Runtime& runtime) override;

  Interpreter& interpreter_;
  const For& loop_;
  FramePtr outer_, frame_;
  Iterator* items_;
};

}  // namespace lathe::jinja
