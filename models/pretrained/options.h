#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "models/pretrained/config.h"

/// Configuration options that most families share.
namespace lathe::pretrained {

/// Returns the dtype of the stored weights according to the file: "dtype", or "torch_dtype" in older files; f32 by
/// default.
DType stored_dtype(const Config& config);

/// Returns the activation in `key`, such as "silu" or "gelu_new"; `fallback` if the file lacks the key. Throws
/// UserError [config_value].
nn::Activation activation(const Config& config, std::string_view key);
nn::Activation activation(const Config& config, std::string_view key, nn::Activation fallback);
/// Returns the activation that Hugging Face calls by this name; nothing if Lathe has none.
std::optional<nn::Activation> activation_named(std::string_view name);

/// Returns a positive integer as a dim of that name.
Dim size(const Config& config, std::string_view key, std::string_view name);
Dim size(const Config& config, std::string_view key, std::string_view name, std::int64_t fallback);

/// Returns the number of layers in `key`: from 1 to 10000.
int layers_of(const Config& config, std::string_view key, std::int64_t fallback);

/// Returns the first of "architectures", such as "BertModel"; empty if the file has none.
std::string architecture(const Config& config);

/// Throws UserError [config_value] if the file has `key`, unless `plain`: an option of which only the default value
/// is supported.
void require_plain(const Config& config, std::string_view key, bool plain);

/// Reads hidden_size, num_attention_heads, num_key_value_heads and head_dim as attention options. Scores are divided
/// by the root of head_dim.
nn::SelfAttentionOptions attention_options(const Config& config);

/// Returns options for attention with `heads_key` heads that split `hidden` evenly. Scores are divided by the root of
/// the head size.
nn::SelfAttentionOptions even_heads(const Config& config, const Dim& hidden, std::string_view heads_key);

/// Returns the rotary embedding of "rope_parameters", or of "rope_theta" and "rope_scaling" in older files. `kind`
/// selects one of several, such as "full_attention".
nn::RopeOptions rope_options(const Config& config, std::string_view kind = {});

/// Returns the number of rotated dims per head: the head size times partial_rotary_factor or rotary_pct.
Dim rotary_dim(const Config& config);

/// Returns the window of a layer: sliding_window if layer_types, or the family's older keys, say that the layer has
/// one.
std::optional<std::int64_t> window_of(const Config& config, int layer);

}  // namespace lathe::pretrained
