#pragma once

#include <map>
#include <optional>
#include <set>

#include "models/text/template/partial/idle_loop.h"
#include "models/text/template/partial/loop_record.h"
#include "models/text/template/partial/loop_watcher.h"
#include "models/text/template/partial/text_pieces.h"

namespace lathe::jinja {

/// Skips iterations of recorded loops whose results match the record, and iterations of idle loops.
class Replay final : public LoopWatcher {
 public:
  /// `recorded` is the output of the recorded render. All references must outlive this object.
  Replay(Interpreter& interpreter, const std::map<const For*, LoopRecord>& records, const ListPart& part,
         std::string_view recorded);

  /// Returns the output after the interpreter has run. Call it once.
  TextPieces text();

  bool watches(const For& loop) const override { return loops_.contains(&loop); }
  void enter(const For& node, Loop& loop, const Value& iterable) override;
  void before_iteration() override;
  void after_iteration() override;
  void breaks() override {}
  void leave() override { loop_ = nullptr; }

 private:
  /// Skips iterations from iteration_ up to `end`.
  void skip_recorded(std::size_t end);
  /// Skips the rest of a loop after its first idle iteration, and spends the work of that iteration for each.
  void skip_idle();

  Interpreter& interpreter_;
  const std::map<const For*, LoopRecord>& records_;
  const ListPart& part_;
  std::string_view recorded_;
  std::set<const For*> loops_;
  TextPieces text_;
  std::size_t taken_ = 0;  ///< bytes of the interpreter's text that are in text_

  // State of the current loop:
  Loop* loop_ = nullptr;
  Value iterable_;
  const LoopRecord* record_ = nullptr;
  Variables variables_;
  std::size_t iteration_ = 0;
  bool rejoins_ = false;  ///< iterations after the last changed one may match the record
  std::optional<IdleLoop> idle_;
  std::optional<std::uint64_t> idle_since_;  ///< work spent before an iteration that idles
};

}  // namespace lathe::jinja
