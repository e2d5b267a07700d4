#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "models/generation/sequence_model.h"

namespace lathe {

/// Start of the names of inputs with cached rows: "past_key_values.0.key".
inline constexpr std::string_view past_prefix = "past_key_values.";

/// Returns the name of the output that joins such an input with new rows: "present.0.key".
std::string present_of(std::string_view past);

/// The ONNX files of a model that generates text, as optimum names them.
struct ExportedFiles {
  std::filesystem::path decoder;  ///< with a cache
  /// With an encoder: the encoder, and the decoder without cached rows, which computes the keys and values of the
  /// encoder's states. It may be the same file as `decoder`, which then has use_cache_branch.
  std::filesystem::path encoder = {}, first = {};
};

/// Returns the files in a directory, or in its folder "onnx". None if the directory has weights in .safetensors
/// files, or no such ONNX files. Throws UserError [exported_inputs] for an encoder without its decoders.
std::optional<ExportedFiles> find_exported(const std::filesystem::path& folder);

/// Throws UserError [exported_options] for a compute dtype other than f32 and for a dtype of the cache, which an ONNX
/// file decides, and [generation_chunk].
void check_exported_options(const SequenceModelOptions& options);

}  // namespace lathe
