#pragma once

#include <string>
#include <vector>

#include "frontend/pretrained/key_table.h"

/// Rules for the keys that the configurations of several families of transformers share.
namespace lathe::pretrained {

inline constexpr std::string_view dropout_reason =
    "inference drops nothing, and fine-tuning runs without the model's own dropout";
inline constexpr std::string_view initial_reason =
    "it initializes weights that the files lack, and Lathe requires all of them";
inline constexpr std::string_view other_head_reason = "it belongs to a head that Lathe does not read";
inline constexpr std::string_view unread_reason = "the library writes it and does not read it";

/// The keys of every configuration, those of older versions included.
std::vector<KeyRule> base_keys();

/// The sizes, norm, activation and rotary embedding of a decoder of the Llama kind. `theta` and `max_length` are the
/// library's rope_theta and max_position_embeddings.
std::vector<KeyRule> decoder_keys(std::string_view theta, std::string_view max_length);

/// The keys of BERT's kind.
std::vector<KeyRule> encoder_keys();

/// The checks of a configuration that one key's rule cannot express: rotary embedding, layer_types, token ids.
/// Returns the keys that the table keeps: read_keys(). UserErrors [config_value], [config_type].
Config model_config(const Config& config, const KeyTable& table);

/// Throws UserError [config_value] for more layers or experts than the files' tensors allow, before any is made.
void check_counts(const Config& config, std::size_t tensors);

/// Throws UserError [config_value] for the first of "architectures": what its head does, and which models Lathe
/// reads.
[[noreturn]] void reject_architecture(const Config& config, std::string_view readable);

/// One note per object of config.json with keys that the library does not read.
std::vector<std::string> unread_key_notes(const Config& config, const KeyTable& table);

}  // namespace lathe::pretrained
