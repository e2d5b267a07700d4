#include "models/text/template/loop.h"

#include <fmt/core.h>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/functions.h"
#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/values/sequences.h"

namespace lathe::jinja {

bool Loop::advance(Runtime& runtime) {
  Value next = after_.is_missing() ? items_->next(runtime) : std::exchange(after_, Value::missing());
  if (next.is_missing()) return false;
  before_ = std::exchange(current_, std::move(next));
  ++index_;
  return true;
}

void Loop::skip(Runtime& runtime, std::size_t count, const Value& last) {
  if (count == 0) return;
  const bool peeked = !after_.is_missing();
  items_->skip(runtime, peeked ? count - 1 : count);
  after_ = Value::missing();
  current_ = last;
  index_ += static_cast<std::int64_t>(count);
}

const Value& Loop::peek(Runtime& runtime) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->read_next(*this);
  if (after_.is_missing()) after_ = items_->next(runtime);
  return after_;
}

std::optional<std::int64_t> Loop::length(Runtime& runtime) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->read_length(*this);
  if (length_) return length_;
  if (iterable_.is_sequence() || iterable_.is_string() || iterable_.is(Kind::dict)) {
    length_ = length_of(runtime, iterable_);
  } else if (const auto known = iterable_.is(Kind::object) ? iterable_.object()->length(runtime) : std::nullopt) {
    length_ = known;
  } else {
    const Value rest = Value::list(collect(runtime, items_));
    items_ = jinja::iterate(runtime, rest);
    length_ = static_cast<std::int64_t>(rest.items().size()) + index_ + !after_.is_missing();
  }
  return length_;
}

Value Loop::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") return index_;
  if (name == "index0") return index_ - 1;
  if (name == "first") return index_ == 1;
  if (name == "last") return peek(runtime).is_missing();
  if (name == "length") return *length(runtime);
  if (name == "revindex") return *length(runtime) - index_ + 1;
  if (name == "revindex0") return *length(runtime) - index_;
  if (name == "depth") return 1;
  if (name == "depth0") return 0;
  if (LoopRecorder* recorder = runtime.recorder(); recorder && name == "previtem") recorder->read_previous(*this);
  if (name == "previtem") return index_ == 1 ? Value::undefined("there is no previous item") : before_;
  if (name == "nextitem") {
    const Value& next = peek(runtime);
    return next.is_missing() ? Value::undefined("there is no next item") : next;
  }
  if (name == "cycle")
    return runtime.make<NativeFunction>("cycle", [this](Runtime&, const Arguments& given) { return cycle(given); });
  if (name == "changed")
    return runtime.make<NativeFunction>("changed",
                                        [this](Runtime& run, const Arguments& given) { return changed(run, given); });
  return Value::missing();
}

Value Loop::cycle(const Arguments& given) const {
  if (given.positional.empty()) fail_operation("no items for cycling given");
  return given.positional[static_cast<std::size_t>(index_ - 1) % given.positional.size()];
}

Value Loop::changed(Runtime& runtime, const Arguments& given) {
  if (LoopRecorder* recorder = runtime.recorder()) recorder->read_state(*this);
  Value now = Value::tuple(given.positional);
  if (!last_changed_.is_missing() && equal(last_changed_, now, runtime.budget())) return false;
  last_changed_ = std::move(now);
  return true;
}

std::string Loop::repr(Runtime& runtime, int) { return fmt::format("<LoopContext {}/{}>", index_, *length(runtime)); }

FramePtr Interpreter::enter_filter(const For& loop, const FramePtr& outer) {
  auto frame = std::make_shared<Frame>();
  frame->slots.assign(static_cast<std::size_t>(loop.filter.size), Value::missing());
  frame->outer = outer;
  const Restore<FramePtr> current(frame_, frame);
  enter(loop.filter.scope);
  return frame;
}

bool Interpreter::passes(const For& loop, const FramePtr& frame, const Value& item) {
  const Restore<FramePtr> current(frame_, frame);
  located(loop.target.extent, [&] { assign(loop.filter_target, item); });
  return truth(runtime_, eval(*loop.condition));
}

Value FilteredItems::advance(Runtime& runtime) {
  if (!frame_) frame_ = interpreter_.enter_filter(loop_, outer_);
  for (Value item = items_->next(runtime); !item.is_missing(); item = items_->next(runtime)) {
    runtime.spend(4);
    if (interpreter_.passes(loop_, frame_, item)) return item;
  }
  return Value::missing();
}

}  // namespace lathe::jinja
