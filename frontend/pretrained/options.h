#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/self_attention.h"
#include "frontend/pretrained/config.h"

/// What the configurations of most families say in the same words.
namespace lathe::pretrained {

/// The dtype that the file says its weights have: "dtype", or "torch_dtype" in older files; f32 where it says
/// nothing.
DType stored_dtype(const Config& config);

/// "silu", "gelu_new", ... as `key` says; `fallback` where the file says nothing. UserError [config_value].
nn::Activation activation(const Config& config, std::string_view key);
nn::Activation activation(const Config& config, std::string_view key, nn::Activation fallback);
/// The function that Hugging Face calls by this name; nothing where Lathe has none.
std::optional<nn::Activation> activation_named(std::string_view name);

/// A positive integer as a dim of that name.
Dim size(const Config& config, std::string_view key, std::string_view name);
Dim size(const Config& config, std::string_view key, std::string_view name, std::int64_t fallback);

/// How many layers `key` says: from 1 to 10000.
int layers_of(const Config& config, std::string_view key, std::int64_t fallback);

/// The first of "architectures", such as "BertModel"; empty where the file has none.
std::string architecture(const Config& config);

/// Throws UserError [config_value] where the file says `key` and means more than `plain`: an option that is not known
/// in any other value.
void require_plain(const Config& config, std::string_view key, bool plain);

/// hidden_size, num_attention_heads, num_key_value_heads and head_dim as the options of an attention, its scores
/// divided by the root of head_dim.
nn::SelfAttentionOptions attention_options(const Config& config);

/// Attention of as many heads as `heads_key` says, which share `hidden` among them; their scores are divided by the
/// root of a head's size.
nn::SelfAttentionOptions even_heads(const Config& config, const Dim& hidden, std::string_view heads_key);

/// The rotary embedding of "rope_parameters", or of "rope_theta" and "rope_scaling" in older files; `kind` names one
/// of several where there are several, such as "full_attention".
nn::RopeOptions rope_options(const Config& config, std::string_view kind = {});

/// How many dims of a head are rotated: its size times partial_rotary_factor or rotary_pct.
Dim rotary_dim(const Config& config);

/// The window of a layer: sliding_window where layer_types says so, or where the older keys of the family do.
std::optional<std::int64_t> window_of(const Config& config, int layer);

}  // namespace lathe::pretrained
