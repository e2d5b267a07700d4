#include "frontend/train/optimizers/adafactor.h"

#include <cmath>
#include <limits>

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

namespace {

/// Moves a running mean to `next` by the fraction `weight`, and returns it.
Tensor move(ParameterUpdate& update, const Tensor& state, const Tensor& next, const Tensor& weight) {
  const Tensor moved = state + (next - state) * weight;
  update.set_state(state, moved);
  return moved;
}

/// Returns the shape with 1 at a dim.
Shape with_one(Shape shape, int dim) {
  shape.set(dim, Dim(1));
  return shape;
}

/// Returns the estimate of the second moment, in the shape of the parameter.
Tensor second_moment(ParameterUpdate& update, const Tensor& weight, double eps1) {
  const Tensor g = update.gradient(), squares = g * g;
  const int rank = g.rank();
  if (rank < 2) return move(update, update.state("v"), squares, weight);
  const Shape rows = with_one(update.shape(), rank - 1), columns = with_one(update.shape(), rank - 2);
  const Tensor row = move(update, update.state("row", update.dtype(), rows), squares.mean(-1, true), weight);
  const Tensor column = move(update, update.state("column", update.dtype(), columns), squares.mean(-2, true), weight);
  return row * column / maximum(row.mean(-2, true), eps1);
}

Tensor root_mean_square(const Tensor& x) { return sqrt((x * x).mean()); }

}  // namespace

Adafactor::operator Optimizer() const {
  const auto rule = [options = *this](ParameterUpdate& update) {
    const double epsilon = update.dtype() == f64 ? std::numeric_limits<double>::epsilon()
                                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
    const double least = options.eps1.value_or(epsilon);
    const Tensor weight = update.rounded(pow(update.step(), options.beta2_decay));
    const Tensor relative = update.rounded(minimum(update.exact_rate(), pow(update.step(), -0.5)));
    const Tensor size = maximum(root_mean_square(update.parameter()), options.eps2) * relative;
    const Tensor moment = maximum(second_moment(update, weight, least), least * least);
    const Tensor direction = rsqrt(moment) * update.gradient();
    const Tensor limit = maximum(root_mean_square(direction) / options.clipping, 1.0);
    update.set_parameter(detail::decayed(update, options.weight_decay) - direction * (size / limit));
  };
  const double smallest = eps1.value_or(0);
  return Optimizer::built_in(
      "Adafactor", lr, Optimizer::Rule(rule),
      detail::first_of({beta2_decay <= 0 && std::isfinite(beta2_decay)
                            ? detail::Fault()
                            : detail::Fault("beta2_decay is " + std::to_string(beta2_decay) + ", not 0 or less"),
                        detail::unless_positive("eps1", smallest), detail::unless_positive("eps2", eps2),
                        detail::unless_at_least("clipping", clipping, 1),
                        detail::unless_positive("weight_decay", weight_decay)}));
}

}  // namespace lathe
