#pragma once

#include "models/text/template/interpreter.h"
#include "models/text/template/loop.h"

namespace lathe::jinja {

/// Called by the interpreter while it runs loops that the watcher chose.
class LoopWatcher {
 public:
  LoopWatcher() = default;
  LoopWatcher(const LoopWatcher&) = delete;
  LoopWatcher& operator=(const LoopWatcher&) = delete;
  virtual ~LoopWatcher() = default;

  virtual bool watches(const For& loop) const = 0;
  /// Before the first iteration. May skip items, as after_iteration() may.
  virtual void enter(const For& node, Loop& loop, const Value& iterable) = 0;
  virtual void before_iteration() = 0;
  virtual void after_iteration() = 0;
  virtual void breaks() = 0;
  virtual void leave() = 0;
};

}  // namespace lathe::jinja
