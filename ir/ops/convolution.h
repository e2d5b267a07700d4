#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/builder.h"

/// Convolutions of [B, channels, spatial dims..] with weights [out channels, channels / groups, kernel sizes..], as
/// torch.nn.functional.conv1d, conv2d and conv3d compute them (cross-correlation: the kernel is not flipped).
namespace lathe::ir {

/// The attributes of `conv`; each list has one number per spatial dim.
struct Convolution {
  std::vector<std::int64_t> stride, low, high, dilation;  ///< low, high: zeros before and after
  std::int64_t groups = 1;

  /// One group, steps of 1, no padding.
  static Convolution plain(int spatial_dims);
};

/// x [B, C, n..], weight [O, C / groups, k..] -> [B, O, (n + low + high - dilation (k - 1) - 1) / stride + 1 ..].
Value conv(const Value& x, const Value& weight, const Convolution& convolution);
/// The same plus bias [O].
Value conv(const Value& x, const Value& weight, const Value& bias, const Convolution& convolution);

/// The gradient of a convolution with respect to an input with these spatial sizes: y [B, O, ..] -> [B, C, sizes..].
/// As an op of its own it is the transposed convolution.
Value transposed_conv(const Value& y, const Value& weight, const Convolution& convolution,
                      std::span<const Dim> sizes);

}  // namespace lathe::ir
