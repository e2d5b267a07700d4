#pragma once

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

namespace lathe::nn {

struct LowRankOptions {
  Dim r{"r", 8};
  double scale = 1;
  double dropout = 0;  ///< of what the adapter reads
  DType dtype = f32;
  /// How A and B start; automatic: A as torch.nn.Linear does, uniform in +-in^-0.5, B as zeros, so that an adapter
  /// changes nothing before it is trained.
  Init a = Init::automatic(), b = Init::automatic();
};

/// A low-rank adapter of a Linear (Hu et al. 2021, 4.1): scale * B A dropout(x), with A [r, in] and B [out, r]:
/// [.., in] -> [.., out]. Linear::add_low_rank() makes it.
class LowRank : public Module {
 public:
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;
  /// scale * B A in the dtype of `like`: what merging adds to the layer's weight, in its shape.
  Tensor delta(const Tensor& like, Where at = Where::current()) const;

  const Parameter& a() const { return a_; }  ///< "lora_A.weight" [r, in]
  const Parameter& b() const { return b_; }  ///< "lora_B.weight" [out, r]
  double scale() const { return scale_; }

 private:
  friend class Linear;
  LowRank(const Linear& layer, const LowRankOptions& options, const Where& at);

  bool in_out_;  ///< of the layer's weight
  double scale_;
  Parameter a_, b_;
  Dropout dropout_;
};

}  // namespace lathe::nn
