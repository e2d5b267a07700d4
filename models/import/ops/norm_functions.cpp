#include "models/import/ops/norm_functions.h"

namespace lathe::importing {

namespace {

/// The tensor with the dims from `axis` on as one.
Tensor with_joined_tail(const Tensor& x, int axis) {
  if (axis == x.rank() - 1) return x;
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.size(i));
  shape.push_back(product(x.shape(), axis, x.rank()));
  return x.reshape(shape);
}

/// Returns whether a tensor has the shape of the normalized dims, so that it is a weight of Lathe's norms.
bool is_weight(const Tensor& weight, const Tensor& x, int axis) {
  if (weight.is_empty() || weight.rank() != x.rank() - axis) return false;
  for (int k = 0; k < weight.rank(); ++k)
    if (weight.size(k) != x.size(axis + k)) return false;
  return true;
}

Tensor scaled(const Tensor& y, const Tensor& weight, const Tensor& bias) {
  const Tensor product = weight.is_empty() ? y : y * weight;
  return bias.is_empty() ? product : product + bias;
}

}  // namespace

Tensor layer_norm_over(const Tensor& x, int axis, const Tensor& weight, const Tensor& bias, double epsilon) {
  const auto flat = [&](const Tensor& w) { return w.reshape({product(x.shape(), axis, x.rank())}); };
  const Tensor joined = with_joined_tail(x, axis);
  if (is_weight(weight, x, axis) && is_weight(bias, x, axis))
    return layer_norm(joined, flat(weight), flat(bias), epsilon).reshape(x.shape());
  return scaled(layer_norm(joined, epsilon).reshape(x.shape()), weight, bias);
}

Tensor rms_norm_over(const Tensor& x, int axis, const Tensor& weight, double epsilon) {
  const Tensor joined = with_joined_tail(x, axis);
  if (is_weight(weight, x, axis))
    return rms_norm(joined, weight.reshape({product(x.shape(), axis, x.rank())}), epsilon).reshape(x.shape());
  return scaled(rms_norm(joined, epsilon).reshape(x.shape()), weight, Tensor());
}

Tensor batch_norm_with(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                       const Tensor& bias, double epsilon) {
  const auto channels = [&](const Tensor& vector) { return along_axis(vector, 1, x.rank()).to(x.dtype()); };
  Tensor y = (x - channels(mean)) / sqrt(channels(variance) + epsilon);
  if (!weight.is_empty()) y = y * channels(weight);
  return bias.is_empty() ? y : y + channels(bias);
}

}  // namespace lathe::importing
