#pragma once

#include <cstdint>
#include <vector>

#include "frontend/nn/feed_forward.h"

namespace lathe::nn {

/// How a mixture of experts computes what its router chose. All give the same but for rounding.
enum class Dispatch : std::uint8_t {
  automatic,  ///< sparse where there are four times as many experts as a token takes, or more
  dense,      ///< every expert computes every token, most of it to be multiplied by 0
  /// Tokens are sorted by expert, each expert computes its own in one segment, and their results are added up where
  /// they came from. No token is dropped, however many want one expert. Dense where an expert's layer has a bias or
  /// an adapter.
  sparse,
};

struct ExpertsOptions {
  std::int64_t count = 8;   ///< experts
  std::int64_t chosen = 2;  ///< of which each token takes so many
  GatedFeedForwardOptions expert = {};
};

/// Feed-forwards of which each token takes the few that a router likes best (Shazeer et al. 2017), weighted by its
/// softmax over those: [.., d] -> [.., d]. The router is the layer "gate", the experts are "experts.0" and on.
class Experts : public Module {
 public:
  Experts(const Module& parent, std::string_view name, const Dim& d, const Dim& d_ff, const ExpertsOptions& options,
          Where at = Where::current());
  /// Appends the router's probabilities [.., experts] to `routers`, unless that is null.
  Tensor operator()(const Tensor& x, Dispatch dispatch = Dispatch::automatic, std::vector<Tensor>* routers = nullptr,
                    Where at = Where::current()) const;

 private:
  bool is_sparse(Dispatch dispatch) const;
  Tensor dense(const Tensor& x, const Tensor& probabilities) const;
  Tensor sparse(const Tensor& x, const Tensor& probabilities) const;

  std::int64_t chosen_;
  Linear gate_;
  std::vector<GatedFeedForward> experts_;
};

}  // namespace lathe::nn
