#pragma once

#include <filesystem>

#include "runtime/parameters/parameters.h"
#include "tools/train/model_settings.h"
#include "tools/train/text_codec.h"

namespace lathe::tools {

/// Writes a trained model as a Hugging Face directory: config.json, model.safetensors, tokenizer.json and
/// generation_config.json, as one transaction (FolderSave). UserErrors of FolderSave.
void write_model_folder(const std::filesystem::path& folder, const ModelSettings& model, const TextCodec& codec,
                        const Parameters& weights);

/// Removes what a process that was killed left half-written there, and checks that write_model_folder() could save
/// into the folder. UserErrors of FolderSave::check().
void prepare_model_folder(const std::filesystem::path& folder);

}  // namespace lathe::tools
