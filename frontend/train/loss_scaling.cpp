#include "frontend/train/loss_scaling.h"

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

using ir::Value;

LossScale::LossScale(ir::GraphBuilder& builder, const LossScaling& options, const std::string& scope)
    : options_(options),
      exponent_(builder.argument(ir::ops::state, scope + ".loss_scale.exponent", i64, {})),
      good_steps_(builder.argument(ir::ops::state, scope + ".loss_scale.good_steps", i64, {})),
      scale_(
          ir::cast(ir::mul(ir::pow(ir::constant(builder, 2, f64), ir::cast(exponent_, f64)), options.start), f32)) {}

Value LossScale::unscaled(const Value& gradient) const {
  const DType dtype = at_least_f32(gradient.dtype());
  return ir::mul(ir::cast(gradient, dtype), ir::cast(ir::div(1.0, scale_), dtype));
}

void LossScale::advance(const Value& finite,
                        const std::function<void(const Value& state, const Value& value)>& update) const {
  const Value good = ir::add(good_steps_, 1.0);
  const Value grows = ir::eq(good, options_.growth_interval);
  const Value after_good = ir::where(grows, ir::add(exponent_, 1.0), exponent_);
  update(exponent_, ir::where(finite, after_good, ir::sub(exponent_, 1.0)));
  update(good_steps_, ir::where(ir::logical_and(finite, ir::logical_not(grows)), good, 0.0));
}

}  // namespace lathe
