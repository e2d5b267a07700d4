#pragma once

#include <filesystem>

namespace lathe::pretrained {

/// Throws UserError [model_folder] for a folder without config.json. The error says what the folder is instead: a
/// folder of the Hugging Face cache, a model in another format, a run of `lathe train`, or empty.
[[noreturn]] void no_config(const std::filesystem::path& folder);

/// Throws UserError [adapter_missing] for an adapter without adapter_model.safetensors. The error names the file that
/// it has instead.
[[noreturn]] void no_adapter_weights(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
