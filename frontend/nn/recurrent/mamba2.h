#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/recurrent/causal_conv.h"
#include "frontend/nn/recurrent/mixer_state.h"

namespace lathe::nn {

struct Mamba2Options {
  std::int64_t heads, head_size;
  std::int64_t state_size = 128;
  std::int64_t groups = 1;  ///< of B and C; heads are a multiple
  std::int64_t conv = 4;    ///< the size of the convolution
  std::int64_t chunk = 64;  ///< steps of a chunk of the recurrence
  bool bias = false;        ///< of in_proj and out_proj
  bool conv_bias = true;
  double eps = 1e-5;                                                     ///< of the norm
  double dt_low = 0, dt_high = std::numeric_limits<double>::infinity();  ///< dt is limited to them
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
};

/// The layer of Mamba-2 (Dao and Gu 2024): [B, T, d] -> [B, T, d]. A projection gives a gate z, x, B, C and dt; x, B
/// and C go through a causal convolution and silu, then
///   y = state_space_dual(x, softplus(dt + dt_bias), -exp(A_log), B, C, skip D)
///   out_proj(norm(y * silu(z)))
/// Parameters have the names and layouts of transformers' Mamba2Mixer: in_proj, conv1d, dt_bias, A_log, D, norm,
/// out_proj. The recurrence is computed in f32, or f64 for f64.
/// Throws UserError [mixer_options] for sizes below 1 and heads that do not divide into the groups.
class Mamba2 : public Module {
 public:
  Mamba2(const Module& parent, std::string_view name, const Dim& d, const Mamba2Options& options,
         Where at = Where::current());
  /// Starts from an empty state and returns the outputs.
  Tensor operator()(const Operand& x) const;
  /// Starts from the state that the call before returned.
  MixerResults run(const Tensor& x, const MixerState& state = {}, Where at = Where::current()) const;

 private:
  Mamba2Options options_;
  Linear in_;
  CausalConv conv_;
  Parameter dt_bias_, a_log_, skip_;
  RmsNorm norm_;
  Linear out_;
};

}  // namespace lathe::nn
