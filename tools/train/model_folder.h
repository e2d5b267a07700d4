#pragma once

#include <filesystem>

#include "runtime/parameters/parameters.h"
#include "tools/train/model_settings.h"
#include "tools/train/text_codec.h"

namespace lathe::tools {

/// Writes a trained model as a Hugging Face directory: config.json, model.safetensors, tokenizer.json and
/// generation_config.json, each whole or not at all. UserError [file_write].
void write_model_folder(const std::filesystem::path& folder, const ModelSettings& model, const TextCodec& codec,
                        const Parameters& weights);

/// Removes what a process that was killed left half-written there.
void remove_model_leftovers(const std::filesystem::path& folder);

}  // namespace lathe::tools
