#pragma once

#include <map>
#include <optional>
#include <set>

#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/partial/loop_watcher.h"

namespace lathe::jinja {

/// Returns the loops that run at most once, outside of any scope with its own variables, and that have neither a
/// condition nor {% else %}.
std::set<const For*> top_loops(const Program& program);

/// Records the top loops over a list that is a view.
class Recording final : public LoopWatcher {
 public:
  Recording(Interpreter& interpreter, std::map<const For*, LoopRecord>& records);

  bool watches(const For& loop) const override { return loops_.contains(&loop); }
  void enter(const For& node, Loop& loop, const Value& iterable) override;
  void before_iteration() override;
  void after_iteration() override {}
  void breaks() override { end(true); }
  void leave() override { end(false); }

 private:
  void end(bool breaks);

  Interpreter& interpreter_;
  std::set<const For*> loops_;
  std::map<const For*, LoopRecord>& records_;
  std::optional<LoopRecorder> recorder_;
};

}  // namespace lathe::jinja
