#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/recurrent/causal_conv.h"
#include "frontend/nn/recurrent/mixer_state.h"

namespace lathe::nn {

struct GatedDeltaNetOptions {
  std::int64_t key_heads, value_heads;            ///< value heads are a multiple of key heads, which they share
  std::int64_t key_size = 128, value_size = 128;  ///< of a head
  std::int64_t conv = 4;                          ///< the size of the convolution
  std::int64_t chunk = 64;                        ///< steps of a chunk of the recurrence
  double eps = 1e-6;                              ///< of the norm
  std::optional<DType> dtype = {};                ///< of the parameters; default: that of the parent
};

/// A layer with the gated delta rule (Yang et al. 2024) as in Qwen3-Next: [B, T, d] -> [B, T, d].
/// Projections give q, k, v, a gate z, b and a; q, k and v go through a causal convolution and silu, q and k are
/// divided by their norms, then
///   y = gated_delta_rule(q, k, v, -exp(A_log) softplus(a + dt_bias), sigmoid(b))
///   out_proj(norm(y) * silu(z))
/// Parameters have the names and layouts of transformers' Qwen3NextGatedDeltaNet: in_proj_qkvz and in_proj_ba with
/// the rows of each key head together, conv1d, dt_bias, A_log, norm, out_proj. The recurrence is computed in f32, or
/// f64 for f64.
/// Throws UserError [mixer_options] for sizes below 1 and value heads that are no multiple of the key heads.
class GatedDeltaNet : public Module {
 public:
  GatedDeltaNet(const Module& parent, std::string_view name, const Dim& d, const GatedDeltaNetOptions& options,
                Where at = Where::current());
  /// Starts from an empty state and returns the outputs.
  Tensor operator()(const Operand& x) const;
  /// Starts from the state that the call before returned.
  MixerResults run(const Tensor& x, const MixerState& state = {}, Where at = Where::current()) const;

 private:
  GatedDeltaNetOptions options_;
  Linear in_qkvz_, in_ba_;
  CausalConv conv_;
  Parameter dt_bias_, a_log_;
  RmsNorm norm_;
  Linear out_;
};

}  // namespace lathe::nn
