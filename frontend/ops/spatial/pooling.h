#pragma once

#include "frontend/ops/spatial/conv_ops.h"

/// Pooling over 1 or 2 spatial dims, as in torch.nn.functional, and functions that change the size of spatial dims.
namespace lathe {

struct PoolOptions {
  PerDim size;                ///< of a window
  PerDim stride = 0;          ///< distance between windows; 0: their size
  PerDim padding = 0;         ///< before and after each spatial dim
  PerDim dilation = 1;        ///< distance between the elements of a window; max_pool only
  bool count_padding = true;  ///< avg_pool only: divides by the size of the window also where it has padding
};
/// The largest element of each window: [B, C, n] -> [B, C, (n + 2 padding - dilation (size - 1) - 1) / stride + 1].
/// Padding is never the largest. The first of equal elements gets the gradient; a NaN is larger than any number.
/// [conv_rank] [conv_options] [unfold_size]
Tensor max_pool1d(const Tensor& x, const PoolOptions& options, Where at = Where::current());
/// [B, C, h, w] -> [B, C, .., ..].
Tensor max_pool2d(const Tensor& x, const PoolOptions& options, Where at = Where::current());
/// The mean of each window: [B, C, n] -> [B, C, (n + 2 padding - size) / stride + 1].
Tensor avg_pool1d(const Tensor& x, const PoolOptions& options, Where at = Where::current());
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options, Where at = Where::current());
/// The means of `size` windows that cover each spatial dim, as torch.nn.functional.adaptive_avg_pool1d and 2d do. A
/// size of 1 is the mean over the dim, which may then be unknown.
Tensor adaptive_avg_pool1d(const Tensor& x, const PerDim& size, Where at = Where::current());
Tensor adaptive_avg_pool2d(const Tensor& x, const PerDim& size, Where at = Where::current());

enum class PadMode {
  zeros,
  reflect,    ///< the elements next to the border, without the border: c b | a b c
  replicate,  ///< the border: a a | a b c
  circular    ///< the other end: b c | a b c
};
struct PadOptions {
  Dim low = 0, high = 0;  ///< the number of elements before and after
  PadMode mode = PadMode::zeros;
};
/// Adds elements before and after a dim. [pad_size] [slice_range]
Tensor pad(const Tensor& a, DimIndex dim, const PadOptions& options, Where at = Where::current());

enum class Interpolation { nearest, linear };
struct InterpolateOptions {
  PerDim size;  ///< of the result's spatial dims
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  ///< linear only: the first and the last elements keep their values
};
/// Resizes the spatial dims of x [B, C, n..], as torch.nn.functional.interpolate does with a size. Linear over two
/// dims is bilinear. Sizes of x are known. [interpolate_size] [conv_rank] [conv_options]
Tensor interpolate(const Tensor& x, const InterpolateOptions& options, Where at = Where::current());

/// (x - mean) / sqrt(variance + eps) * weight + bias over each group of channels and all spatial dims of
/// x [B, C, n..], with weight [C] and bias [C] (Wu and He 2018). [group_norm]
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps = 1e-5,
                  Where at = Where::current());

}  // namespace lathe
