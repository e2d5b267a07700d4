#pragma once

#include <string>
#include <vector>

#include "models/pretrained/family.h"

/// Rules for configuration keys that several families of transformers share.
namespace lathe::pretrained {

inline constexpr std::string_view dropout_reason =
    "inference drops nothing, and fine-tuning runs without the model's own dropout";
inline constexpr std::string_view initial_reason =
    "it initializes weights that the files lack, and Lathe requires all of them";
inline constexpr std::string_view other_head_reason = "it belongs to a head that Lathe does not read";
inline constexpr std::string_view unread_reason = "the library writes it and does not read it";

/// Rules for the keys of every configuration, including older versions.
std::vector<KeyRule> base_keys();

/// Rules for the sizes, norm, activation and rotary embedding of a Llama-like decoder. `theta` and `max_length` are
/// the library's defaults for rope_theta and max_position_embeddings.
std::vector<KeyRule> decoder_keys(std::string_view theta, std::string_view max_length);

/// Rules for the keys of BERT-like encoders.
std::vector<KeyRule> encoder_keys();

/// Checks a configuration beyond the rules of single keys: rotary embedding, layer_types, token ids. Returns the keys
/// that read_keys() keeps. Throws UserErrors [config_value], [config_type].
Config model_config(const Config& config, const Family& family);

/// Throws UserError [config_value] for an end token of `config` outside the vocabulary of the model, whose
/// config.json is `model`: it is never generated, so no text would end.
void check_end_tokens(const Config& config, const Config& model);

/// Throws UserError [config_value] for more layers or experts than the number of tensors in the files allows, before
/// any is created.
void check_counts(const Config& config, std::size_t tensors);

/// Throws UserError [config_value] for the first entry of "architectures": names its head, and the models that Lathe
/// can load.
[[noreturn]] void reject_architecture(const Config& config, std::string_view readable);

/// Returns one note per object in config.json that has keys the library does not read.
std::vector<std::string> unread_key_notes(const Config& config, const Family& family);

}  // namespace lathe::pretrained
