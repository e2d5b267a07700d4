#include "frontend/nn/experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "frontend/nn/require_option.h"
#include "frontend/ops/derived_ops.h"

namespace lathe::nn {

namespace {

constexpr std::int64_t sparse_ratio = 4;  // experts per chosen expert from which dispatch is sparse

/// Applies one layer of every expert to its segment of rows: [rows, in] -> [rows, out].
template <class Layer>
Tensor grouped(const Tensor& x, const Tensor& offsets, const std::vector<GatedFeedForward>& experts,
               const Layer& layer) {
  std::vector<Tensor> weights;
  for (const GatedFeedForward& expert : experts) {
    const Linear& linear = layer(expert);
    const Tensor weight = linear.weight().as(x);
    weights.push_back(linear.in_out() ? weight.transpose(0, 1) : weight);
  }
  return grouped_matmul(x, offsets, weights);
}

/// Returns the number of tokens of x [.., d].
Dim tokens_of(const Tensor& x) {
  Dim tokens(1);
  for (int i = 0; i + 1 < x.rank(); ++i) tokens = tokens * x.size(i);
  return tokens;
}

void check(const ExpertsOptions& options, const Where& at) {
  const auto require = [&](bool holds, std::string_view name, const auto& value, std::string_view hint) {
    require_option(at, "experts", "experts_options", holds, name, value, hint);
  };
  require(options.count >= 1, "count", options.count, "give at least 1 expert");
  require(options.chosen >= 1 && options.chosen <= options.count, "chosen", options.chosen,
          "give a number from 1 to the number of experts");
  require(std::isfinite(options.capacity_factor) && options.capacity_factor >= 0, "capacity_factor",
          options.capacity_factor, "give a positive number, such as 1.25, or 0 for no limit");
}

bool is_plain(const Linear& layer) { return !layer.bias() && !layer.low_rank(); }

}  // namespace

Tensor load_balancing_loss(const Routing& routing, Where at) {
  const CallSite line(routing.logits, at);
  const Dim experts = routing.probabilities.size(-1);
  const DType dtype = at_least_f32(routing.logits.dtype());
  const Tensor taken = one_hot(routing.choices.flatten(0, -1), experts, dtype).mean(0);  // [experts]
  const Tensor likely = routing.probabilities.to(dtype).flatten(0, -2).mean(0);          // [experts]
  return (taken * likely).sum() * static_cast<double>(experts.number());
}

Tensor router_z_loss(const Routing& routing, Where at) {
  const CallSite line(routing.logits, at);
  return square(routing.logits.to(at_least_f32(routing.logits.dtype())).logsumexp(-1)).mean();
}

Experts::Experts(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                 const ExpertsOptions& options, Where at)
    : Module(parent, name, "Experts", (check(options, at), options.expert.dtype)),
      chosen_(options.chosen),
      capacity_factor_(options.capacity_factor),
      gate_(*this, "gate", d, Dim("experts", options.count), {.bias = false}, at) {
  for (std::int64_t i = 0; i < options.count; ++i)
    experts_.emplace_back(*this, fmt::format("experts.{}", i), d, d_ff, options.expert, at);
}

Tensor Experts::operator()(const Tensor& x, Dispatch dispatch, std::vector<Routing>* routings, Where at) const {
  const CallSite line(x, at, path());
  Routing routing;
  routing.logits = gate_(x);
  routing.probabilities = routing.logits.softmax(-1);
  const auto [likely, choices] = top_k(routing.probabilities, chosen_);  // [.., chosen]
  routing.choices = choices;
  if (capacity_factor_ > 0 || routings) routing.is_kept = is_kept(choices);
  if (routings) routings->push_back(routing);
  return is_sparse(dispatch) ? sparse(x, likely / likely.sum(-1, true), routing) : dense(x, routing);
}

/// Returns whether each choice is among the first ones of its expert: i64 [.., chosen] -> bool [.., chosen].
Tensor Experts::is_kept(const Tensor& choices) const {
  const Graph g = choices.graph();
  if (capacity_factor_ == 0) return choices >= 0;
  const auto experts = static_cast<std::int64_t>(experts_.size());
  const Dim tokens = tokens_of(choices);
  const Tensor by_rank = choices.reshape({tokens, chosen_}).transpose(0, 1).reshape({tokens * chosen_});
  const Tensor taken = one_hot(by_rank, experts, i64);                            // [chosen * tokens, experts]
  const Tensor before = (cumsum(taken, 0, {.exclusive = true}) * taken).sum(-1);  // [chosen * tokens]
  const Tensor share = g.dim_value(tokens, f64) * (capacity_factor_ * static_cast<double>(chosen_));
  const Tensor room = ceil(share / static_cast<double>(experts)).to(i64);  // []
  return (before < room).reshape({chosen_, tokens}).transpose(0, 1).reshape(choices.shape());
}

bool Experts::is_sparse(Dispatch dispatch) const {
  const bool few = static_cast<std::int64_t>(experts_.size()) >= sparse_ratio * chosen_;
  if (dispatch == Dispatch::dense || (dispatch == Dispatch::automatic && !few)) return false;
  return std::all_of(experts_.begin(), experts_.end(), [](const GatedFeedForward& expert) {
    return expert.gate() && is_plain(*expert.gate()) && is_plain(*expert.up()) && is_plain(expert.down());
  });
}

Tensor Experts::dense(const Tensor& x, const Routing& routing) const {
  const Tensor& probabilities = routing.probabilities;
  const Tensor taken =
      one_hot(routing.choices, probabilities.size(-1), probabilities.dtype());  // [.., chosen, experts]
  const Tensor likely = probabilities * taken.sum(-2);                          // [.., experts]
  Tensor weights = likely / likely.sum(-1, true);
  if (capacity_factor_ > 0) weights = weights * (taken * routing.is_kept.to(taken.dtype()).unsqueeze(-1)).sum(-2);
  Tensor sum;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const Tensor part = experts_[i](x) * weights.slice(-1, at, at + 1);  // [.., d]
    sum = sum.is_empty() ? part : sum + part;
  }
  return sum;
}

Tensor Experts::sparse(const Tensor& x, const Tensor& weights, const Routing& routing) const {
  const auto experts = static_cast<std::int64_t>(experts_.size());
  const Dim tokens = tokens_of(x), slots = tokens * chosen_;  // one slot per token and chosen expert
  const Tensor rows = x.reshape({tokens, x.size(-1)});
  Tensor expert = routing.choices.reshape({slots});  // the expert of each slot
  // A dropped slot sorts behind those of all experts, where grouped_matmul yields zeros.
  if (capacity_factor_ > 0) expert = where(routing.is_kept.reshape({slots}), expert, experts);

  const Tensor order = argsort(expert, 0);  // slots sorted by expert
  const Tensor token = order / chosen_;
  const Tensor counts = one_hot(expert, experts, i64).sum(0);  // [experts]
  const Tensor offsets = pad(cumsum(counts, 0), 0, 1, 0);      // [experts + 1]
  const Tensor sorted = gather(rows, token);                   // [slots, d]
  const Tensor gate = grouped(sorted, offsets, experts_, [](auto& e) -> const Linear& { return *e.gate(); });
  const Tensor up = grouped(sorted, offsets, experts_, [](auto& e) -> const Linear& { return *e.up(); });
  const Tensor hidden = activate(experts_[0].activation(), gate) * up;  // [slots, d_ff]
  const Tensor down = grouped(hidden, offsets, experts_, [](auto& e) -> const Linear& { return e.down(); });
  const Tensor weighted = down * gather(weights.reshape({slots}), order).unsqueeze(-1);  // [slots, d]
  return scatter_add(token, weighted, tokens).reshape(x.shape());
}

}  // namespace lathe::nn
