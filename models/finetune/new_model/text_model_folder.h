#pragma once

#include <filesystem>

#include "models/finetune/new_model/text_codec.h"
#include "models/finetune/new_model/text_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// Writes a trained model as a Hugging Face directory in one transaction (FolderSave): config.json,
/// model.safetensors, tokenizer.json and generation_config.json. Throws UserErrors of FolderSave.
void write_model_folder(const std::filesystem::path& folder, const TextModelSettings& model, const TextCodec& codec,
                        const Parameters& weights);

/// Removes incomplete files of killed processes and checks that write_model_folder() could save into the folder.
/// Throws UserErrors of FolderSave::check().
void prepare_model_folder(const std::filesystem::path& folder);

}  // namespace lathe
