#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "frontend/pretrained/lora/adapted_model.h"
#include "frontend/pretrained/lora/lora_config.h"

namespace lathe::tools {

/// What --lora says: "r=16,alpha=32,targets=q_proj:v_proj", keys with values, lists by colons; empty: r=16 on all
/// linear layers. Keys: r, alpha (2 r where it is not given), targets (names, or all-linear), dropout, rslora (true
/// or false), save (modules that are trained as a whole). UserError [lora_option].
pretrained::LoraConfig parse_lora(const std::string& option);

/// UserError [lora_option] where --lora is given for a model that has an adapter.
void require_one_adapter(const std::optional<std::string>& lora, const pretrained::AdaptedFolders& folders);

/// --lora, with settings or without.
CLI::Option* add_lora_option(CLI::App& command, std::optional<std::string>& lora);

}  // namespace lathe::tools
