#include "models/text/template/partial/replay.h"

#include "models/text/template/partial/recording.h"

namespace lathe::jinja {

Replay::Replay(Interpreter& interpreter, const std::map<const For*, LoopRecord>& records, const ListPart& part,
               std::string_view recorded)
    : interpreter_(interpreter),
      records_(records),
      part_(part),
      recorded_(recorded),
      loops_(top_loops(interpreter.program())) {}

TextPieces Replay::text() {
  text_.append(interpreter_.text().substr(taken_));
  return std::move(text_);
}

void Replay::enter(const For& node, Loop& loop, const Value& iterable) {
  loop_ = &loop;
  iterable_ = iterable;
  record_ = nullptr;
  iteration_ = 0;
  rejoins_ = false;
  idle_since_.reset();
  idle_ = iterable.is_sequence() ? IdleLoop::find(node) : std::nullopt;
  const auto record = records_.find(&node);
  if (record == records_.end() || !iterable.view()) return;
  record_ = &record->second;
  variables_ = read_variables(interpreter_);
  const std::size_t common = record_->common_iterations(variables_, *iterable.view(), part_, rejoins_);
  rejoins_ = rejoins_ && record_->given_up == never && part_.replaced != ListView::none;
  skip_recorded(common);
}

void Replay::skip_recorded(std::size_t end) {
  if (end == iteration_) return;
  record_->write_attributes(variables_, iteration_, end);
  interpreter_.runtime().budget().spend_skipped(record_->work_at[end] - record_->work_at[iteration_]);
  loop_->skip(interpreter_.runtime(), end - iteration_, iterable_.item(end - 1));
  const std::size_t begin = record_->text_at[iteration_], size = record_->text_at[end] - begin;
  text_.append(interpreter_.text().substr(taken_));
  taken_ = interpreter_.text().size();
  text_.share(recorded_.substr(begin, size));
  interpreter_.skip_output(size);
  iteration_ = end;
}

void Replay::before_iteration() {
  if (idle_ && !idle_since_ && idle_->idles(interpreter_)) idle_since_ = interpreter_.runtime().budget().spent();
}

void Replay::after_iteration() {
  ++iteration_;
  if (idle_since_) return skip_idle();
  if (!rejoins_ || iteration_ <= record_->last_use(part_.replaced)) return;
  if (record_->has_attributes(variables_, iteration_)) skip_recorded(record_->iterations());
}

void Replay::skip_idle() {
  const std::size_t size = iterable_.size(), rest = size - iteration_;
  const std::uint64_t work = interpreter_.runtime().budget().spent() - *idle_since_;
  idle_.reset();
  idle_since_.reset();
  if (rest == 0) return;
  interpreter_.runtime().budget().spend_skipped(work * rest);
  loop_->skip(interpreter_.runtime(), rest, iterable_.item(size - 1));
  iteration_ = size;
}

}  // namespace lathe::jinja
