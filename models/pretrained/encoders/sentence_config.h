#pragma once

#include "models/pretrained/config/key_table.h"
#include "models/pretrained/encoders/sentence_encoder.h"

namespace lathe::pretrained {

/// Returns a rule for every key of config_sentence_transformers.json.
const KeyTable& sentence_keys();

/// Reads prompts, default_prompt_name, similarity_fn_name and truncate_dim of config_sentence_transformers.json, if
/// the directory has that file. Throws UserErrors of Config, [config_value].
void read_sentence_config(ModelFiles& files, Pooling& pooling, TextOptions& texts);

}  // namespace lathe::pretrained
