#pragma once

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

namespace lathe::nn {

struct LowRankOptions {
  Dim r{"r", 8};
  double scale = 1;
  double dropout = 0;  ///< of the adapter's input
  DType dtype = f32;
  /// Initializers. Automatic: A like torch.nn.Linear, uniform in +-in^-0.5, and B zeros, so that an untrained adapter
  /// has no effect.
  Init a = Init::automatic(), b = Init::automatic();
};

/// A low-rank adapter of a Linear (Hu et al. 2021, 4.1): scale * B A dropout(x), with A [r, in] and B [out, r]: [..,
/// in] -> [.., out]. Created by Linear::add_low_rank().
class LowRank : public Module {
 public:
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;
  /// Returns scale * B A in the dtype of `like`: the term that merging adds to the layer's weight, in the weight's
  /// shape.
  Tensor delta(const Tensor& like, Where at = Where::current()) const;

  const Parameter& a() const { return a_; }  ///< "lora_A.weight" [r, in]
  const Parameter& b() const { return b_; }  ///< "lora_B.weight" [out, r]
  double scale() const { return scale_; }

 private:
  friend class Linear;
  LowRank(const Linear& layer, const LowRankOptions& options, const Where& at);

  bool in_out_;  ///< the layer's weight is [in, out]
  double scale_;
  Parameter a_, b_;
  Dropout dropout_;
};

}  // namespace lathe::nn
