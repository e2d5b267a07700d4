#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/feed_forward.h"
#include "models/pretrained/config/config.h"

/// Configuration options that most families share.
namespace lathe::pretrained {

/// Returns the dtype of the stored weights according to the file: "dtype", or "torch_dtype" in older files; f32 by
/// default.
DType stored_dtype(const Config& config);

/// Returns the activation in `key`, such as "silu" or "gelu_new". Throws UserError [config_value].
nn::Activation activation(const Config& config, std::string_view key);
/// Returns the activation that Hugging Face calls by this name; nothing if Lathe has none.
std::optional<nn::Activation> activation_named(std::string_view name);

/// Returns a positive integer as a dim of that name.
Dim size(const Config& config, std::string_view key, std::string_view name);

/// Returns the number of layers in `key`: from 1 to 10000.
int layers_of(const Config& config, std::string_view key);

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

/// Returns the options of a norm whose eps is in `eps_key`.
nn::NormOptions norm_options(const Config& config, std::string_view eps_key);

/// Returns the window of a layer: sliding_window, unless layer_types says that the layer has none. Files without
/// layer_types: unless `is_full`, which the family reads from its older keys.
std::optional<std::int64_t> window_of(const Config& config, std::size_t layer, bool is_full = false);

}  // namespace lathe::pretrained
