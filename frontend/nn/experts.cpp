#include "frontend/nn/experts.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/ops.h"

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

bool is_plain(const Linear& layer) { return !layer.bias() && !layer.low_rank(); }

}  // namespace

Experts::Experts(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff,
                 const ExpertsOptions& options, Where at)
    : Module(parent, name, "Experts"),
      chosen_(options.chosen),
      gate_(*this, "gate", d, Dim("experts", options.count), {.dtype = options.expert.dtype, .bias = false}, at) {
  for (std::int64_t i = 0; i < options.count; ++i)
    experts_.emplace_back(*this, fmt::format("experts.{}", i), d, d_ff, options.expert, at);
}

Tensor Experts::operator()(const Tensor& x, Dispatch dispatch, std::vector<Tensor>* routers, Where at) const {
  const CallSite line(x, at, path());
  const Tensor probabilities = gate_(x).softmax(-1);  // [.., experts]
  if (routers) routers->push_back(probabilities);
  return is_sparse(dispatch) ? sparse(x, probabilities) : dense(x, probabilities);
}

bool Experts::is_sparse(Dispatch dispatch) const {
  const bool few = static_cast<std::int64_t>(experts_.size()) >= sparse_ratio * chosen_;
  if (dispatch == Dispatch::dense || (dispatch == Dispatch::automatic && !few)) return false;
  return std::all_of(experts_.begin(), experts_.end(), [](const GatedFeedForward& expert) {
    return expert.gate() && is_plain(*expert.gate()) && is_plain(*expert.up()) && is_plain(expert.down());
  });
}

Tensor Experts::dense(const Tensor& x, const Tensor& probabilities) const {
  const Tensor which = top_k(probabilities, chosen_).indices;                                  // [.., chosen]
  const Tensor taken = one_hot(which, probabilities.size(-1), probabilities.dtype()).sum(-2);  // [.., experts]
  const Tensor kept = probabilities * taken, weights = kept / kept.sum(-1, true);
  Tensor sum;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const Tensor part = experts_[i](x) * weights.slice(-1, at, at + 1);  // [.., d]
    sum = sum.is_empty() ? part : sum + part;
  }
  return sum;
}

Tensor Experts::sparse(const Tensor& x, const Tensor& probabilities) const {
  const auto experts = static_cast<std::int64_t>(experts_.size());
  Dim tokens(1);
  for (int i = 0; i + 1 < x.rank(); ++i) tokens = tokens * x.size(i);
  const Dim slots = tokens * chosen_;  // one slot per token and chosen expert
  const Tensor rows = x.reshape({tokens, x.size(-1)});
  const auto [kept, which] = top_k(probabilities.reshape({tokens, probabilities.size(-1)}), chosen_);
  const Tensor weights = (kept / kept.sum(-1, true)).reshape({slots});
  const Tensor expert = which.reshape({slots});  // the expert of each slot

  const Tensor order = argsort(expert, 0);  // slots sorted by expert
  const Tensor token = order / chosen_;
  const Tensor counts = one_hot(expert, experts, i64).sum(0);  // [experts]
  const Tensor offsets = pad(cumsum(counts, 0), 0, 1, 0);      // [experts + 1]
  const Tensor sorted = gather(rows, token);                   // [slots, d]
  const Tensor gate = grouped(sorted, offsets, experts_, [](auto& e) -> const Linear& { return *e.gate(); });
  const Tensor up = grouped(sorted, offsets, experts_, [](auto& e) -> const Linear& { return *e.up(); });
  const Tensor hidden = activate(experts_[0].activation(), gate) * up;  // [slots, d_ff]
  const Tensor down = grouped(hidden, offsets, experts_, [](auto& e) -> const Linear& { return e.down(); });
  const Tensor weighted = down * gather(weights, order).unsqueeze(-1);  // [slots, d]
  return scatter_add(token, weighted, tokens).reshape(x.shape());
}

}  // namespace lathe::nn
