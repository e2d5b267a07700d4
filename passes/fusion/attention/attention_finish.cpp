#include <fmt/core.h>

#include <algorithm>

#include "passes/fusion/attention/attention_cost.h"
#include "passes/fusion/attention/attention_grower.h"
#include "passes/fusion/attention/softmax_sums.h"
#include "passes/fusion/prepare/align.h"

/// Checks whether a grown group is an attention, and describes it.
namespace lathe {

using namespace ir;

std::optional<ValueId> AttentionGrower::weights() const {
  const auto found = std::find_if(region_.members.begin(), region_.members.end(), [&](ValueId id) {
    return is_exponential(graph_[id]) && covers_domain(region_, dims_of(id));
  });
  return found == region_.members.end() ? std::nullopt : std::optional(*found);
}

/// Whether the exponentials are those of a softmax: their sum along the columns is computed here, or the rows read a
/// value that depends on such a sum elsewhere, from a matmul with the same operands. The latter holds for a backward
/// pass, because its own sums may come from the result and its gradient (FlashAttention).
bool AttentionGrower::sums_weights() {
  const auto is_member = [&](ValueId id) { return state(id) == State::member; };
  const auto are_scores = [&](ValueId id) {
    return std::any_of(seeds_.begin(), seeds_.end(),
                       [&](const auto& seed) { return are_same_product(graph_, seed.first, id); });
  };
  std::set<ValueId> read;
  for (const ValueId id : region_.members) {
    const std::vector<ValueId> exponentials = exponentials_in_sum(graph_, id);
    if (std::any_of(exponentials.begin(), exponentials.end(), is_member)) return true;
    for (const Read& r : s_.reads(id))
      if (!is_member(r.value)) read.insert(r.value);
  }
  return std::any_of(read.begin(), read.end(),
                     [&](ValueId id) { return comes_from_softmax_sum(graph_, id, are_scores); });
}

/// Whether a member is part of a gradient or is read by one.
bool AttentionGrower::has_gradient() const {
  const auto is_gradient = [&](ValueId id) { return graph_[id].loc.gradient(); };
  return std::any_of(region_.members.begin(), region_.members.end(), [&](ValueId id) {
    const auto users = s_.users[id];
    return is_gradient(id) || std::any_of(users.begin(), users.end(), is_gradient);
  });
}

/// Returns the last row dim of unknown size, otherwise the largest one.
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
  const auto fail = [&](ValueId at, std::string reason) {
    reject(at, std::move(reason));
    return std::nullopt;
  };
  const auto exponentials = weights();
  if (!exponentials) return fail(scores, "nothing exponentiates it");
  if (graph_[scores].type.shape.numel().is(0)) return fail(scores, "it has no elements");
  if (consumers_.empty()) return fail(region_.members.back(), "no product sums the weights");
  if (!sums_weights()) {
    no_softmax_ = exponentials;
    return fail(*exponentials, "no row is divided by the sum of its exponentials");
  }
  AttentionGroup group;
  group.domain = region_.domain;
  group.row = choose_row();
  group.members = region_.members;
  group.consumers = consumers_;
  group.sums = sums_;
  group.inlined.assign(inline_.begin(), inline_.end());
  if (summed_)
    for (const int d : *summed_)
      if (d != group.row) group.sequential.push_back(d);
  const auto is_sequential = [&](int d) {
    return d == group.row || std::find(group.sequential.begin(), group.sequential.end(), d) != group.sequential.end();
  };
  for (const int d : accumulated_)
    if (!is_sequential(d)) group.accumulated.push_back(d);
  for (const auto* ids : {&group.members, &group.sums})
    for (const ValueId id : *ids) {
      group.dims[id] = dims_of(id);
      group.space[id] = notes_.plan.space_dims(id);
    }
  Dim tasks(1);
  for (int d = 0; d + 1 < group.domain.rank(); ++d)
    if (!is_sequential(d)) tasks = tasks * group.domain[d].unnamed();
  // The backward pass of a classifier has the same form, but one score matmul only, and is faster unfused.
  if (summed_ && tasks.is(1) && seeds_.size() == 1)
    return fail(scores, "its gradient has nothing to run in parallel");
  const Dim& rows = group.domain[group.row];
  const bool few = rows.value().value_or(least_block_rows) < least_block_rows;
  if (few && (!decode_ || summed_ || !sums_.empty() || has_gradient())) {
    rejections_.clear();  // that other nodes cannot join is not the reason
    return fail(scores,
                fmt::format("{} {} too few to gain from it", rows.to_string(), rows.is(1) ? "row is" : "rows are"));
  }
  return group;
}

}  // namespace lathe
