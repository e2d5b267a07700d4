#include "frontend/pretrained/pretrained.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "runtime/files/atomic_file.h"

namespace lathe::pretrained {

namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw UserError(fmt::format("cannot make {}: {}", folder.string(), failed.message()), "file_write",
                    "give another folder");
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  make_folder(path.parent_path());
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

Pretrained load(const std::filesystem::path& folder, const LoadOptions& options) {
  const TensorFolder tensors = TensorFolder::open(folder);
  Pretrained loaded{{read_config(folder)}, nullptr};
  MadeCausalLm made = make_causal_lm(loaded, tensors);
  take_weights(loaded, tensors, *made.model, made.names);
  loaded.model = std::move(made.model);
  if (options.weights == WeightFormat::q8) quantize_weights(loaded, *loaded.model, loaded.model->table());
  return loaded;
}

void save(const ModelFiles& files, const std::filesystem::path& folder) {
  std::vector<PlacedTensor> tensors;
  for (const auto& [parameter, place] : files.places) {
    const HostTensor& value = files.weights.get(parameter);
    if (is_byte(value.dtype()))
      throw UserError(fmt::format("{} is quantized, which {} has no name for", parameter, place.tensor),
                      "quantized_weights", "load the model with its weights as they are stored to save it");
    tensors.push_back({place.file, view_of(place.tensor, value)});
  }
  make_folder(folder);
  write_tensor_folder(folder, tensors);
  for (const auto& [path, text] : files.others) write_text(folder / path, text);
  write_text(folder / "config.json", files.config_text);
}

}  // namespace lathe::pretrained
