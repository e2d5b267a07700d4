#include "models/pretrained/pretrained.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/pretrained/families.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "runtime/files/write/folder_save.h"

namespace lathe::pretrained {

void add_files(FolderSave& save, const ModelFiles& files) {
  std::vector<PlacedTensor> tensors;
  for (const auto& [parameter, place] : files.places) {
    const HostTensor& value = files.weights.get(parameter);
    if (is_byte(value.dtype()))
      throw UserError(fmt::format("{} is quantized, which {} has no name for", parameter, place.tensor),
                      "quantized_weights", "load the model with its weights as they are stored to save it");
    tensors.push_back({place.file, view_of(place.tensor, value)});
  }
  add_tensor_files(save, tensors);
  for (const auto& [path, text] : files.others) save.write(path, text);
  save.write("config.json", files.config_text);
}

std::vector<std::string> files_written(const ModelFiles& files) {
  std::set<std::string> tensor_files;
  for (const auto& [parameter, place] : files.places) tensor_files.insert(place.file);
  std::vector<std::string> names = lathe::files_written(tensor_files);
  for (const auto& [path, text] : files.others) names.push_back(path);
  names.emplace_back("config.json");
  return names;
}

std::vector<std::string> model_files_in(const std::filesystem::path& folder) {
  std::vector<std::string> names = tensor_files_in(folder);
  std::vector<std::string> others{"config.json", "adapter_config.json", "adapter_model.safetensors", "modules.json",
                                  "config_sentence_transformers.json"};
  for (const std::string& family : model_types(ModelKind::encoder)) others.push_back(sentence_file(family));
  for (std::string& name : others)
    if (path_exists(folder / name)) names.push_back(std::move(name));
  return names;
}

void save(const ModelFiles& files, const std::filesystem::path& folder) {
  FolderSave save(folder);
  add_files(save, files);
  save.commit(model_files_in(folder));
}

}  // namespace lathe::pretrained
