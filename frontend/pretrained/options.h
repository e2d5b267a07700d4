#pragma once

#include <optional>
#include <string_view>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "frontend/pretrained/config.h"

/// What the configurations of most families say in the same words.
namespace lathe::pretrained {

/// The dtype that the file says its weights have: "dtype", or "torch_dtype" in older files; f32 where it says
/// nothing.
DType stored_dtype(const Config& config);

/// "silu", "gelu_new", ... as `key` says. UserError [config_value].
nn::Activation activation(const Config& config, std::string_view key);

/// A positive integer as a dim of that name.
Dim size(const Config& config, std::string_view key, std::string_view name);

/// hidden_size, num_attention_heads, num_key_value_heads and head_dim as the options of an attention, its scores
/// divided by the root of head_dim.
nn::SelfAttentionOptions attention_options(const Config& config);

/// The rotary embedding of "rope_parameters", or of "rope_theta" and "rope_scaling" in older files; `kind` names one
/// of several where there are several, such as "full_attention".
nn::RopeOptions rope_options(const Config& config, std::string_view kind = {});

/// How many dims of a head are rotated: its size times partial_rotary_factor or rotary_pct.
Dim rotary_dim(const Config& config);

/// The window of a layer: sliding_window where layer_types says so, or where the older keys of the family do.
std::optional<std::int64_t> window_of(const Config& config, int layer);

}  // namespace lathe::pretrained
