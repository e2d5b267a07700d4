#pragma once

#include <filesystem>
#include <optional>

#include "frontend/pretrained/lora/lora.h"

namespace lathe::pretrained {

/// A model, and the adapter on it where there is one.
struct AdaptedModel {
  Pretrained model;
  std::optional<Lora> lora = {};
  /// Of tokenizer, chat template and generation_config.json: the adapter's where it has a tokenizer.json, else the
  /// model's.
  std::filesystem::path text_folder;
};

/// Reads a model's directory, or that of an adapter as PEFT and `lathe finetune` write it, whose adapter_config.json
/// names that of its model: as it is written there, or from the adapter's directory on. With `adapter` the directory
/// is the model's, whatever the adapter names. UserErrors of load() and load_lora(); [adapter_base] where an adapter
/// names no directory.
AdaptedModel load_adapted(const std::filesystem::path& folder, const std::filesystem::path& adapter = {},
                          const LoadOptions& options = {});

}  // namespace lathe::pretrained
