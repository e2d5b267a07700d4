#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/module.h"

namespace lathe::nn {

struct NormOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  double eps = 1e-5;
  bool weight = true;        ///< multiplies by a learned weight
  bool bias = true;          ///< LayerNorm: adds a learned bias; none without a weight
  bool flat = false;         ///< RmsNorm: the weight is named after the module
  bool unit_offset = false;  ///< RmsNorm: multiplies by 1 + weight, as in Gemma
};

/// (x - mean) / sqrt(var + eps) [* weight [+ bias]] over the last dim (Ba et al. 2016): [.., d] -> [.., d].
class LayerNorm : public Module {
 public:
  LayerNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options = {},
            Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  double eps_;
  std::optional<Parameter> weight_, bias_;
};

/// x / sqrt(mean(x^2) + eps) [* weight] over the last dim (Zhang and Sennrich 2019): [.., d] -> [.., d].
class RmsNorm : public Module {
 public:
  RmsNorm(const Module& parent, std::string_view name, const Dim& d, const NormOptions& options = {},
          Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  double eps_;
  bool unit_offset_;
  std::optional<Parameter> weight_;
};

/// Dropout at a fixed rate, drawn from the graph's random state; no op at rate 0. Compiling in evaluation mode
/// removes it.
class Dropout {
 public:
  /// Throws UserError [dropout_rate] unless 0 <= rate < 1.
  explicit Dropout(double rate, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

 private:
  double rate_;
};

}  // namespace lathe::nn
