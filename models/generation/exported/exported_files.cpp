#include "models/generation/exported/exported_files.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "runtime/files/paths.h"

namespace lathe {

namespace {

/// Returns the first of the files that a directory, or its folder "onnx", has; an empty path if it has none.
std::filesystem::path onnx_file(const std::filesystem::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    for (const std::filesystem::path& file : {folder / name, folder / "onnx" / name})
      if (path_exists(file)) return file;
  return {};
}

}  // namespace

std::string present_of(std::string_view past) { return "present." + std::string(past.substr(past_prefix.size())); }

std::optional<ExportedFiles> find_exported(const std::filesystem::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (path_exists(folder / name)) return std::nullopt;
  const std::filesystem::path encoder = onnx_file(folder, {"encoder_model.onnx"});
  if (encoder.empty()) {
    const std::filesystem::path file =
        onnx_file(folder, {"model.onnx", "decoder_model_merged.onnx", "decoder_with_past_model.onnx"});
    if (!file.empty()) return ExportedFiles{file};
    return path_exists(folder / "model.pt2") ? std::optional(ExportedFiles{folder / "model.pt2"}) : std::nullopt;
  }
  const std::filesystem::path merged = onnx_file(folder, {"decoder_model_merged.onnx"});
  if (!merged.empty()) return ExportedFiles{merged, encoder, merged};
  ExportedFiles files{onnx_file(folder, {"decoder_with_past_model.onnx"}), encoder,
                      onnx_file(folder, {"decoder_model.onnx"})};
  if (files.decoder.empty() || files.first.empty())
    throw UserError(fmt::format("{} has an encoder_model.onnx, but no decoder with a cache", quote_path(folder)),
                    "exported_inputs",
                    "add decoder_model_merged.onnx, or both decoder_model.onnx and decoder_with_past_model.onnx, as "
                    "the task text2text-generation-with-past of optimum writes them");
  return files;
}

void check_exported_options(const SequenceModelOptions& options) {
  if (options.dtype != f32 || options.cache_dtype)
    throw UserError(fmt::format("an exported file computes in its own dtypes, not in {}",
                                name(options.cache_dtype.value_or(options.dtype))),
                    "exported_options", "leave out the compute dtype and the dtype of the cache");
  if (options.chunk < 1)
    throw UserError(fmt::format("chunks of {} tokens", options.chunk), "generation_chunk", "give 1 or more");
}

}  // namespace lathe
