#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/tensor/builder.h"

/// Dynamic loss scaling for f16, whose smallest number is 6e-8: the gradient of a large multiple of the loss is
/// computed, so that small gradients survive, and divided again in f32 (Micikevicius et al. 2018, section 3.2; the
/// rule of torch.amp.GradScaler).
namespace lathe {

struct LossScaling {
  double start = 65536;                 ///< the first scale
  std::int64_t growth_interval = 2000;  ///< it doubles after so many updates in a row that were not skipped
};

/// The scale of this run, start * 2^exponent, and what becomes of it. The states "<scope>.loss_scale.exponent" and
/// "<scope>.loss_scale.good_steps", i64 scalars, start at zero as every optimizer state does.
class LossScale {
 public:
  LossScale(ir::GraphBuilder& builder, const LossScaling& options, const std::string& scope);
  /// f32 scalar.
  const ir::Value& scale() const { return scale_; }
  /// gradient / scale(), in f32 (f64 for f64).
  ir::Value unscaled(const ir::Value& gradient) const;
  /// Declares the next scale through `update`: half of this one when the gradients are not
  /// `finite`, twice after growth_interval updates in a row in which they were.
  void advance(const ir::Value& finite,
               const std::function<void(const ir::Value& state, const ir::Value& value)>& update) const;

 private:
  LossScaling options_;
  ir::Value exponent_, good_steps_, scale_;
};

}  // namespace lathe
