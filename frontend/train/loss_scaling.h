#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/tensor/builder.h"

/// Dynamic loss scaling for f16, whose smallest positive number is 6e-8: the loss is multiplied by a large scale so
/// that small gradients do not underflow, and the gradients are divided by it in f32 (Micikevicius et al. 2018,
/// section 3.2; the rule of torch.amp.GradScaler).
namespace lathe {

struct LossScaling {
  double start = 65536;                 ///< the initial scale
  std::int64_t growth_interval = 2000;  ///< the scale doubles after this many consecutive updates that were not
                                        ///< skipped
};

/// The scale of this run, start * 2^exponent, and its update. The states "<scope>.loss_scale.exponent" and
/// "<scope>.loss_scale.good_steps", i64 scalars, start at zero like all optimizer states.
class LossScale {
 public:
  LossScale(ir::GraphBuilder& builder, const LossScaling& options, const std::string& scope);
  /// An f32 scalar.
  const ir::Value& scale() const { return scale_; }
  /// Returns gradient / scale(), in f32 (f64 for f64).
  ir::Value unscaled(const ir::Value& gradient) const;
  /// Declares the next scale through `update`: half of the current one unless the gradients are `finite`, and twice
  /// after growth_interval consecutive finite updates.
  void advance(const ir::Value& finite,
               const std::function<void(const ir::Value& state, const ir::Value& value)>& update) const;

 private:
  LossScaling options_;
  ir::Value exponent_, good_steps_, scale_;
};

}  // namespace lathe
