#pragma once

#include <optional>
#include <string_view>

#include "frontend/nn/module.h"
#include "frontend/ops/spatial/conv_ops.h"

/// Layers for images and sound.
namespace lathe::nn {

struct ConvLayerOptions {
  PerDim size;  ///< of the kernel
  PerDim stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// A convolution with a weight [out, in / groups, k..] and a bias [out]. Initial values as in PyTorch: uniform within
/// 1 / sqrt(in / groups * k..).
class ConvLayer : public Module {
 public:
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 protected:
  /// Throws UserError [conv_options] for channels that do not divide into the groups.
  ConvLayer(const Module& parent, std::string_view name, int spatial_dims, const Dim& in, const Dim& out,
            const ConvLayerOptions& options, const Where& at);

 private:
  int spatial_dims_;
  ConvOptions options_;
  std::optional<Parameter> weight_, bias_;
};

/// conv1d: [B, in, n] -> [B, out, ..].
class Conv1d : public ConvLayer {
 public:
  Conv1d(const Module& parent, std::string_view name, const Dim& in, const Dim& out, const ConvLayerOptions& options,
         Where at = Where::current())
      : ConvLayer(parent, name, 1, in, out, options, at) {}
};

/// conv2d: [B, in, h, w] -> [B, out, .., ..].
class Conv2d : public ConvLayer {
 public:
  Conv2d(const Module& parent, std::string_view name, const Dim& in, const Dim& out, const ConvLayerOptions& options,
         Where at = Where::current())
      : ConvLayer(parent, name, 2, in, out, options, at) {}
};

struct GroupNormOptions {
  std::int64_t groups;
  double eps = 1e-5;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// group_norm with a weight [C] and a bias [C]: [B, C, n..] -> [B, C, n..].
class GroupNorm : public Module {
 public:
  GroupNorm(const Module& parent, std::string_view name, const Dim& channels, const GroupNormOptions& options,
            Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  std::int64_t groups_;
  double eps_;
  Parameter weight_, bias_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;            ///< weight of a batch in the running statistics
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the batch and all spatial dims (Ioffe and Szegedy 2015):
/// [B, C, n..] -> [B, C, n..]. The running mean and variance are states of the graph, "<path>.running_mean" and
/// "<path>.running_var" [C]; a run of a graph with the call updates them, the variance without its bias.
class BatchNorm : public Module {
 public:
  BatchNorm(const Module& parent, std::string_view name, const Dim& channels, const BatchNormOptions& options = {},
            Where at = Where::current());
  /// Normalizes with the statistics of the batch.
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;
  /// Normalizes with the running statistics, for evaluation.
  Tensor evaluate(const Tensor& x, Where at = Where::current()) const;

 private:
  Tensor scaled(const Tensor& x, const Tensor& mean, const Tensor& variance) const;

  BatchNormOptions options_;
  Parameter weight_, bias_;
};

}  // namespace lathe::nn
