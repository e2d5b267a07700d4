#pragma once

#include <string_view>

#include "frontend/pretrained/lora/lora_config.h"

/// How PEFT finds modules by their paths.
namespace lathe::pretrained {

/// Whether a path is one of a list, ends in one from a dot on, or matches the expression as a whole. UserError
/// [adapter_pattern] for what is no regular expression.
bool is_among(const ModuleNames& names, std::string_view path);

/// Whether the end of a path, from its start or a dot on, matches the regular expression. UserError
/// [adapter_pattern].
bool ends_in_match(std::string_view pattern, std::string_view path);

/// Whether the configuration gives an adapter to a linear layer of this path; `is_output` tells that it is the
/// model's output layer. UserError [adapter_pattern].
bool is_target(const LoraConfig& config, std::string_view path, bool is_output);

/// Whether a module of this path is trained and saved as a whole.
bool is_saved_whole(const LoraConfig& config, std::string_view path);

}  // namespace lathe::pretrained
