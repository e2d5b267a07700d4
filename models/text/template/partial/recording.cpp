#include "models/text/template/partial/recording.h"

namespace lathe::jinja {

namespace {

void add_top_loops(const Block& block, std::set<const For*>& loops) {
  for (const Statement& statement : block) {
    const auto* loop = std::get_if<For>(&statement.node);
    if (loop && !loop->condition && loop->otherwise.empty()) loops.insert(loop);
    const auto* branches = std::get_if<If>(&statement.node);
    if (!branches) continue;
    for (const auto& [test, body] : branches->branches) add_top_loops(body, loops);
    add_top_loops(branches->otherwise, loops);
  }
}

}  // namespace

std::set<const For*> top_loops(const Program& program) {
  std::set<const For*> loops;
  add_top_loops(program.main.body, loops);
  return loops;
}

Recording::Recording(Interpreter& interpreter, std::map<const For*, LoopRecord>& records)
    : interpreter_(interpreter), loops_(top_loops(interpreter.program())), records_(records) {}

void Recording::enter(const For& node, Loop& loop, const Value& iterable) {
  const ListView* view = iterable.view();
  if (!view || !view->reaches_end()) return;
  LoopRecord& record = records_.try_emplace(&node, read_variables(interpreter_), *view).first->second;
  recorder_.emplace(record, loop);
  interpreter_.runtime().set_recorder(&*recorder_);
}

void Recording::before_iteration() {
  if (recorder_) recorder_->start_iteration(interpreter_.text().size(), interpreter_.runtime().budget().spent());
}

void Recording::end(bool breaks) {
  if (!recorder_) return;
  recorder_->end(interpreter_.text().size(), interpreter_.runtime().budget().spent(), breaks);
  interpreter_.runtime().set_recorder(nullptr);
  recorder_.reset();
}

}  // namespace lathe::jinja
