#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/nn/module.h"

namespace lathe::nn {

struct CausalConvOptions {
  std::int64_t size = 4;  ///< of the kernel: the steps that an output sees, with its own
  bool bias = true;
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// The outputs of all steps, and the last size - 1 inputs [B, size - 1, C], which the next call starts from.
struct CausalConvResults {
  Tensor output;
  Tensor state;
};

/// A depthwise convolution along time whose outputs see no later step: [B, T, C] -> [B, T, C]. Its parameters are
/// those of torch.nn.Conv1d with C groups: weight [C, 1, size] and bias [C].
/// Throws UserError [conv_options] for a size below 1, and [dim_unbound] for an unknown number of channels.
class CausalConv : public Module {
 public:
  CausalConv(const Module& parent, std::string_view name, const Dim& channels, const CausalConvOptions& options = {},
             Where at = Where::current());
  /// Starts from the state that the call before returned, or from zeros.
  CausalConvResults run(const Tensor& x, const Tensor& state = {}, Where at = Where::current()) const;

 private:
  std::int64_t channels_, size_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

}  // namespace lathe::nn
