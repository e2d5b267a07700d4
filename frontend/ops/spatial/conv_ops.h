#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "frontend/tensor.h"

/// Convolutions over 1 to 3 spatial dims, as in torch.nn.functional: the kernel is not flipped. The windows of the
/// input are a view (unfold), so a convolution is a matmul that reads them in place.
namespace lathe {

/// One number for all spatial dims, or one for each: 2, or {2, 1}.
struct PerDim {
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  PerDim(T number) : numbers{static_cast<std::int64_t>(number)} {}  // NOLINT(google-explicit-constructor)
  PerDim(std::initializer_list<std::int64_t> each) : numbers(each) {}
  std::vector<std::int64_t> numbers;
};

struct ConvOptions {
  PerDim stride = 1;    ///< distance between outputs
  PerDim padding = 0;   ///< zeros before and after each spatial dim
  PerDim dilation = 1;  ///< distance between the elements of the kernel
  std::int64_t groups = 1;
};
/// x [B, C, n], weight [O, C / groups, k] -> [B, O, (n + 2 padding - dilation (k - 1) - 1) / stride + 1].
/// [conv_rank] [conv_channels] [conv_size] [conv_options] [conv_weight]
Tensor conv1d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {}, Where at = Where::current());
/// The same plus bias [O]. [conv_bias]
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options = {},
              Where at = Where::current());
/// x [B, C, h, w], weight [O, C / groups, kh, kw] -> [B, O, .., ..].
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {}, Where at = Where::current());
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options = {},
              Where at = Where::current());
/// x [B, C, d, h, w], weight [O, C / groups, kd, kh, kw] -> [B, O, .., .., ..].
Tensor conv3d(const Tensor& x, const Tensor& weight, const ConvOptions& options = {}, Where at = Where::current());
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options = {},
              Where at = Where::current());

struct ConvTransposeOptions {
  PerDim stride = 1, padding = 0;
  PerDim output_padding = 0;  ///< additional outputs at the end; less than the stride or the dilation
  PerDim dilation = 1;
  std::int64_t groups = 1;
};
/// The transpose of a convolution as a linear map: x [B, C, n], weight [C, O / groups, k] ->
/// [B, O, (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1]. [conv_rank] [conv_channels]
/// [conv_options] [conv_size]
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options = {},
                        Where at = Where::current());
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options = {}, Where at = Where::current());
/// x [B, C, h, w], weight [C, O / groups, kh, kw] -> [B, O, .., ..].
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options = {},
                        Where at = Where::current());
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options = {}, Where at = Where::current());

/// x [B, C, d, h, w], weight [C, O / groups, kd, kh, kw] -> [B, O, .., .., ..].
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const ConvTransposeOptions& options = {},
                        Where at = Where::current());
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options = {}, Where at = Where::current());

}  // namespace lathe
