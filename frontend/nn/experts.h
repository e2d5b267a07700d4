#pragma once

#include <cstdint>
#include <vector>

#include "frontend/nn/feed_forward.h"

namespace lathe::nn {

/// How a mixture of experts is computed. The results are equal up to rounding.
enum class Dispatch : std::uint8_t {
  automatic,  ///< sparse if there are at least four times as many experts as a token chooses
  dense,      ///< every expert computes every token; most results are multiplied by 0
  /// Sorts tokens by expert, computes each expert's tokens as one segment, and adds the results at the tokens'
  /// original rows. Falls back to dense if a layer of an expert has a bias or an adapter.
  sparse,
};

struct ExpertsOptions {
  std::int64_t count = 8;   ///< experts
  std::int64_t chosen = 2;  ///< experts per token
  /// Limits the tokens of one expert to ceil(capacity_factor * tokens * chosen / count), where tokens are all tokens
  /// of the call (Fedus et al. 2021, Switch Transformers, eq. 3). An expert takes the first choices of all tokens in
  /// their order, then the second ones, and so on. Choices above the limit are dropped: they add nothing to the
  /// result, and a token that loses all of its choices yields zeros, so that only the residual connection carries it.
  /// 0: no limit, no token is dropped, however many choose one expert.
  double capacity_factor = 0;
  GatedFeedForwardOptions expert = {};
};

/// The router's decisions in one call, in the dtype of the call's input.
struct Routing {
  Tensor logits;         ///< [.., experts], before the softmax
  Tensor probabilities;  ///< [.., experts]
  Tensor choices;        ///< i64 [.., chosen]: the experts of each token, the most likely one first
  Tensor is_kept;        ///< bool [.., chosen]: false for choices above the capacity
};

/// Returns experts * sum over experts of (share of choices) * (mean probability), a scalar that is 1 if tokens are
/// spread evenly and grows as experts are overloaded (Switch Transformers, eq. 4, for one choice per token). Choices
/// above the capacity count. Multiply it by a small factor, such as 1e-2, and add it to the loss. f64 for f64 inputs,
/// else f32.
Tensor load_balancing_loss(const Routing& routing, Where at = Where::current());
/// Returns the mean of logsumexp(logits)^2 over tokens, which keeps router logits small (Zoph et al. 2022, ST-MoE,
/// eq. 5; the factor there is 1e-3). f64 for f64 inputs, else f32.
Tensor router_z_loss(const Routing& routing, Where at = Where::current());

/// A mixture of experts (Shazeer et al. 2017): each token uses the few feed-forwards that the router ranks highest,
/// weighted by its softmax over those: [.., d] -> [.., d]. The router is the layer "gate", the experts are
/// "experts.0", "experts.1", ..
class Experts : public Module {
 public:
  /// Throws UserError [experts_options] for options out of range, such as more choices than experts.
  Experts(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff, const ExpertsOptions& options,
          Where at = Where::current());
  /// Appends the router's decisions to `routings`, unless that is null.
  Tensor operator()(const Tensor& x, Dispatch dispatch = Dispatch::automatic,
                    std::vector<Routing>* routings = nullptr, Where at = Where::current()) const;

 private:
  bool is_sparse(Dispatch dispatch) const;
  Tensor is_kept(const Tensor& choices) const;
  Tensor dense(const Tensor& x, const Routing& routing) const;
  Tensor sparse(const Tensor& x, const Tensor& weights, const Routing& routing) const;

  std::int64_t chosen_;
  double capacity_factor_;
  Linear gate_;
  std::vector<GatedFeedForward> experts_;
};

}  // namespace lathe::nn
