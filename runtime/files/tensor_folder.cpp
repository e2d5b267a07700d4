#include "runtime/files/tensor_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/strict_json.h"

namespace lathe {

namespace {

constexpr std::string_view single_name = "model.safetensors", index_name = "model.safetensors.index.json";
constexpr std::uint64_t largest_index = std::uint64_t{64} << 20;

[[noreturn]] void bad_index(const std::filesystem::path& folder, const std::string& what) {
  throw UserError(fmt::format("{}: {}", (folder / index_name).string(), what), "model_index",
                  "the index does not belong to these files");
}

/// A name within the folder: no path, nothing hidden.
bool is_base_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && !name.starts_with(".");
}

/// File by tensor, as the index says.
std::map<std::string, std::string> read_index(const std::filesystem::path& folder) {
  const auto path = folder / index_name;
  const nlohmann::json index = parse_strict_json(read_file(path, largest_index), path.string());
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    bad_index(folder, "it has no object weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string() || !is_base_name(file.get<std::string>()))
      bad_index(folder, fmt::format("tensor {} is in {}, which is no .safetensors file of this folder", quote(tensor),
                                    quote(file.dump())));
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

}  // namespace

TensorFolder TensorFolder::open(const std::filesystem::path& folder) {
  TensorFolder opened;
  opened.folder_ = folder;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw UserError(fmt::format("{} is no folder", folder.string()), "model_folder", "give a model's directory");
  opened.sharded_ = std::filesystem::exists(folder / index_name, ignored);
  if (opened.sharded_) {
    for (const auto& [tensor, file] : read_index(folder)) opened.file_of_.emplace(tensor, file);
  } else if (!std::filesystem::exists(folder / single_name, ignored)) {
    throw UserError(fmt::format("{} has neither {} nor {}", folder.string(), single_name, index_name), "model_folder",
                    "only weights in .safetensors files are read");
  }
  const auto open_file = [&](const std::string& name) {
    if (!opened.files_.contains(name)) opened.files_.emplace(name, SafetensorsFile::open(folder / name));
  };
  if (!opened.sharded_) open_file(std::string(single_name));
  for (const auto& [tensor, file] : opened.file_of_) {
    open_file(file);
    if (!opened.files_.at(file).contains(tensor))
      bad_index(folder, fmt::format("tensor {} is not in {}", quote(tensor), file));
  }
  for (const auto& [name, file] : opened.files_)
    for (const std::string& tensor : file.names()) {
      const auto known = opened.file_of_.find(tensor);
      if (opened.sharded_ && (known == opened.file_of_.end() || known->second != name))
        bad_index(folder, fmt::format("{} has a tensor {} that the index {}", name, quote(tensor),
                                      known == opened.file_of_.end() ? "does not name" : "has in another file"));
      opened.file_of_.emplace(tensor, name);
    }
  for (const auto& [tensor, file] : opened.file_of_) opened.names_.push_back(tensor);
  return opened;
}

const std::string& TensorFolder::file_of(std::string_view name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end())
    throw UserError(fmt::format("{}: there is no tensor {}", folder_.string(), quote(name)), "safetensors_missing",
                    fmt::format("it has {} tensors", names_.size()));
  return found->second;
}

void write_tensor_folder(const std::filesystem::path& folder, const std::vector<PlacedTensor>& tensors) {
  std::map<std::string, std::vector<TensorView>> files;
  nlohmann::ordered_json index;
  std::uint64_t total = 0;
  std::map<std::string, std::string> weight_map;
  for (const PlacedTensor& placed : tensors) {
    files[placed.file].push_back(placed.tensor);
    weight_map[placed.tensor.name] = placed.file;
    total += static_cast<std::uint64_t>(count_elements(placed.tensor.shape)) * size_in_bytes(placed.tensor.dtype);
  }
  for (const auto& [name, content] : files) write_safetensors(folder / name, content, {{"format", "pt"}});
  if (files.size() == 1 && files.begin()->first == single_name) return;
  index["metadata"]["total_size"] = total;
  index["weight_map"] = weight_map;
  AtomicFile file(folder / index_name);
  file.write(index.dump(2) + "\n");
  file.commit();
}

}  // namespace lathe
