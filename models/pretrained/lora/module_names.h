#pragma once

#include <string_view>

#include "models/pretrained/lora/lora_config.h"

/// PEFT's rules for finding modules by path.
namespace lathe::pretrained {

/// Whether a path is in a list, ends in an entry that starts at a dot, or matches the expression as a whole. Throws
/// UserError [adapter_pattern] for an invalid regular expression.
bool is_among(const ModuleNames& names, std::string_view path);

/// Whether the end of a path, from its start or a dot on, matches the regular expression. Throws UserError
/// [adapter_pattern].
bool ends_in_match(std::string_view pattern, std::string_view path);

/// Whether the configuration selects the linear layer of this path; `is_output`: it is the model's output layer.
/// Throws UserError [adapter_pattern].
bool is_target(const LoraConfig& config, std::string_view path, bool is_output);

/// Whether a module of this path is trained and saved as a whole.
bool is_saved_whole(const LoraConfig& config, std::string_view path);

}  // namespace lathe::pretrained
