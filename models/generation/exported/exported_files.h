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

/// The ONNX files of a model that generates text, as optimum names them, or a program of torch.export.
struct ExportedFiles {
  std::filesystem::path decoder;  ///< with a cache; .onnx or .pt2
  /// With an encoder: the encoder, and the decoder without cached rows, which computes the keys and values of the
  /// encoder's states. It may be the same file as `decoder`, which then has use_cache_branch.
  std::filesystem::path encoder = {}, first = {};
};

/// Returns the files in a directory: ONNX files there or in its folder "onnx", or else "model.pt2". None if the
/// directory has weights in .safetensors files, or no such files. Throws UserError [exported_inputs] for an encoder
/// without its decoders.
std::optional<ExportedFiles> find_exported(const std::filesystem::path& folder);

/// Throws UserError [exported_options] for a compute dtype other than f32 and for a dtype of the cache, which the
/// file decides, and [generation_chunk].
void check_exported_options(const SequenceModelOptions& options);

}  // namespace lathe
