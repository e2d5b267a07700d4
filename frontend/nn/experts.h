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
  /// original rows. No token is dropped, however many choose one expert. Falls back to dense if a layer of an expert
  /// has a bias or an adapter.
  sparse,
};

struct ExpertsOptions {
  std::int64_t count = 8;   ///< experts
  std::int64_t chosen = 2;  ///< experts per token
  GatedFeedForwardOptions expert = {};
};

/// A mixture of experts (Shazeer et al. 2017): each token uses the few feed-forwards that the router ranks highest,
/// weighted by its softmax over those: [.., d] -> [.., d]. The router is the layer "gate", the experts are
/// "experts.0", "experts.1", ..
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
