#include "passes/lowering/verify/verify_placement.h"

#include <fmt/core.h>

#include <map>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "passes/fusion/reads.h"

namespace lathe {

using namespace ir;

namespace {

class Account {
 public:
  Account(const Graph& graph, const FusionPlan& plan, const std::function<int(ValueId)>& buffer_of)
      : graph_(graph), plan_(plan), buffer_of_(buffer_of) {
    for (const ValueId id : graph.arguments()) holds_[buffer_of(id)] = id;
  }

  void run_regions() {
    for (int r = 0; r < static_cast<int>(plan_.regions.size()); ++r) {
      const Region& region = plan_.regions[r];
      for (const ValueId member : region.members)
        for (const Read& read : reads_of(graph_, member, plan_.inlined))
          if (plan_.region(read.value) != r && graph_[read.value].op != &ops::constant) require(read.value, member);
      for (const ValueId member : region.members)
        if (plan_.is_stored(base(member))) holds_[buffer_of_(member)] = base(member);
    }
  }

  void hand_back(std::span<const std::pair<ValueId, ValueId>> copies) {
    for (const auto& [state, value] : copies) {
      require(value, state);
      holds_[buffer_of_(state)] = base(value);
    }
    for (const Update& update : graph_.updates)
      if (holds_.at(buffer_of_(update.state)) != base(update.value)) fail(update.value, update.state);
    for (const Output& output : graph_.outputs) require(output.value, output.value);
  }

 private:
  ValueId base(ValueId id) const { return plan_.placement[id].base; }

  void require(ValueId value, ValueId reader) const {
    const auto held = holds_.find(buffer_of_(value));
    if (held == holds_.end() || held->second != base(value)) fail(value, reader);
  }

  [[noreturn]] void fail(ValueId value, ValueId reader) const {
    const auto text = [&](ValueId id) {
      return fmt::format("%{} {} at {}", id.index, graph_[id].op->name.value, graph_[id].loc.to_string());
    };
    const auto held = holds_.find(buffer_of_(value));
    throw InternalError(fmt::format("lowering of @{}: {} reads {}, but its buffer holds {}  [placement]", graph_.name,
                                    text(reader), text(value),
                                    held == holds_.end() ? "nothing" : text(held->second)));
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const std::function<int(ValueId)>& buffer_of_;
  std::map<int, ValueId> holds_;  // by buffer
};

}  // namespace

void verify_placement(const Graph& graph, const FusionPlan& plan, const std::function<int(ValueId)>& buffer_of,
                      std::span<const std::pair<ValueId, ValueId>> copies) {
  Account account(graph, plan, buffer_of);
  account.run_regions();
  account.hand_back(copies);
}

}  // namespace lathe
