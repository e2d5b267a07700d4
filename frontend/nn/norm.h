#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/graph.h"

namespace lathe::nn {

struct NormOptions {
  DType dtype = f32;
  double eps = 1e-5;
  bool flat = false;  ///< RmsNorm: the weight is named as the module itself
};

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dim (Ba et al. 2016): [.., d] -> [.., d].
class LayerNorm {
 public:
  LayerNorm(Graph& g, std::string_view name, const Dim& d, const NormOptions& options = {},
            Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  std::string path_;
  double eps_;
  Tensor weight_, bias_;
};

/// x / sqrt(mean(x^2) + eps) * weight over the last dim (Zhang and Sennrich 2019): [.., d] -> [.., d].
class RmsNorm {
 public:
  RmsNorm(Graph& g, std::string_view name, const Dim& d, const NormOptions& options = {},
          Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  std::string path_;
  double eps_;
  Tensor weight_;
};

/// Dropout with a rate: nothing at rate 0, so that a graph for inference draws no numbers.
class Dropout {
 public:
  /// Throws UserError [dropout_rate] unless 0 <= rate < 1.
  Dropout(Graph& g, double rate, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  double rate_;
  std::optional<Tensor> state_;
};

}  // namespace lathe::nn
