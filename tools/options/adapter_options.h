#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/lora/lora_config.h"

namespace lathe::tools {

/// Adds --adapter: the directory of an adapter for the command's model.
void add_adapter_option(CLI::App& command, std::filesystem::path& adapter);

/// Parses the value of --lora: "r=16,alpha=32,targets=q_proj:v_proj", keys with values; lists are separated by
/// colons. Empty: r=16 on all linear layers. Keys: r, alpha (default 2 r), targets (names, or all-linear), dropout,
/// rslora (true or false), save (modules that are trained in full). Throws UserError [lora_option].
pretrained::LoraConfig parse_lora(const std::string& option);

/// Throws UserError [lora_option] if --lora is given for a model that already has an adapter.
void require_one_adapter(const std::optional<std::string>& lora, const pretrained::AdaptedFolders& folders);

/// Adds --lora, whose settings are optional.
CLI::Option* add_lora_option(CLI::App& command, std::optional<std::string>& lora);

}  // namespace lathe::tools
