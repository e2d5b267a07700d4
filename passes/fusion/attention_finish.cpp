#include <fmt/core.h>

#include <algorithm>

#include "passes/fusion/align.h"
#include "passes/fusion/attention_grower.h"

/// What a grown group must have to be an attention, and how it is described.
namespace lathe {

using namespace ir;

bool AttentionGrower::makes_weights() const {
  return std::any_of(region_.members.begin(), region_.members.end(), [&](ValueId id) {
    const auto* elementwise = graph_[id].op->as<Elementwise>();
    return elementwise && elementwise->op == ScalarOp::exp && covers_domain(region_, dims_of(id));
  });
}

/// The last dim of unknown size, else the largest.
int AttentionGrower::choose_row() const {
  int best = *rows_.begin();
  for (const int d : rows_) {
    const auto size = region_.domain[d].value(), largest = region_.domain[best].value();
    if (!size || (largest && *size >= *largest)) best = d;
  }
  return best;
}

std::optional<AttentionGroup> AttentionGrower::finish() {
  const ValueId scores = region_.members.front();
  const bool reduces = std::any_of(region_.members.begin(), region_.members.end(),
                                   [&](ValueId id) { return graph_[id].op->as<Reduce>() != nullptr; });
  const auto fail = [&](ValueId at, std::string reason) {
    reject(at, std::move(reason));
    return std::nullopt;
  };
  // A backward pass may find the sums of its rows elsewhere: FlashAttention's from the result and its gradient.
  if (!makes_weights() || !(reduces || seeds_.size() > 1))
    return fail(scores, "nothing exponentiates and sums its columns");
  if (consumers_.empty()) return fail(region_.members.back(), "no product sums the weights");
  AttentionGroup group;
  group.domain = region_.domain;
  group.row = choose_row();
  group.members = region_.members;
  group.consumers = consumers_;
  group.sums = sums_;
  group.inlined.assign(inline_.begin(), inline_.end());
  if (summed_)
    for (const int d : *summed_)
      if (d != group.row) group.serial.push_back(d);
  const auto is_serial = [&](int d) {
    return d == group.row || std::find(group.serial.begin(), group.serial.end(), d) != group.serial.end();
  };
  for (const int d : repeated_)
    if (!is_serial(d)) group.repeated.push_back(d);
  for (const auto* ids : {&group.members, &group.sums})
    for (const ValueId id : *ids) {
      group.dims[id] = dims_of(id);
      group.space[id] = plan_.space_dims(id);
    }
  Dim tasks(1);
  for (int d = 0; d + 1 < group.domain.rank(); ++d)
    if (!is_serial(d)) tasks = tasks * group.domain[d].unnamed();
  // A classifier looks the same from behind, but has one product of scores, and is faster as it stands.
  if (summed_ && tasks.is(1) && seeds_.size() == 1)
    return fail(scores, "its gradient has nothing to run in parallel");
  if (group.domain[group.row].value().value_or(16) < 8)
    return fail(scores, fmt::format("{} rows are too few to gain from it", group.domain[group.row].to_string()));
  return group;
}

}  // namespace lathe
