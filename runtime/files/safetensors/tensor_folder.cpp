#include "runtime/files/safetensors/tensor_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "runtime/files/other_format.h"
#include "runtime/files/paths.h"
#include "runtime/files/strict_json.h"

namespace lathe {

namespace {

constexpr std::string_view single_name = "model.safetensors", index_name = "model.safetensors.index.json";
constexpr std::uint64_t largest_index = std::uint64_t{64} << 20;

[[noreturn]] void bad_index(const std::filesystem::path& folder, const std::string& what) {
  throw UserError(fmt::format("{}: {}", (folder / index_name).string(), what), "model_index",
                  "the index does not belong to these files");
}

/// Returns whether a name is a visible file directly in the folder.
bool is_base_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && !name.starts_with(".");
}

/// Throws an error for a folder without .safetensors that names the format it has instead.
[[noreturn]] void no_weights(const std::filesystem::path& folder) {
  const std::string missing = fmt::format("{} has neither {} nor {}", quote_path(folder), single_name, index_name);
  for (const auto& entry : list_folder(folder)) {
    const std::string name = entry.filename().string();
    if (const auto other = other_format_named(name))
      throw UserError(fmt::format("{}; it has {}, {}", missing, quote(name), other->name), "model_folder",
                      other->advice);
  }
  throw UserError(missing, "model_folder", "only weights in .safetensors files are read");
}

/// Returns whether a folder with these files needs an index. `Files` is a set of names or a map by names.
template <class Files>
bool needs_index(const Files& files) {
  return files.size() != 1 || !files.contains(std::string(single_name));
}

/// Returns the file of each tensor from the index.
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

void require_model_folder(const std::filesystem::path& folder) {
  if (is_folder(folder)) return FolderSave::require_complete(folder);
  const std::string name = quote_path(folder);
  constexpr const char* advice = "give the directory of a model, with config.json and .safetensors files";
  if (!path_exists(folder)) throw UserError(fmt::format("there is no directory {}", name), "model_folder", advice);
  const auto other = other_format_named(folder.filename().string());
  throw UserError(fmt::format("{} is {}", name, other ? other->name : "a file, not a directory"), "model_folder",
                  other ? other->advice : advice);
}

TensorFolder TensorFolder::open(const std::filesystem::path& folder) {
  TensorFolder opened;
  opened.folder_ = folder;
  require_model_folder(folder);
  opened.sharded_ = path_exists(folder / index_name);
  const bool has_single = path_exists(folder / single_name);
  if (!opened.sharded_ && !has_single) no_weights(folder);
  if (opened.sharded_)
    for (const auto& [tensor, file] : read_index(folder)) opened.file_of_.emplace(tensor, file);
  const bool names_single =
      std::ranges::any_of(opened.file_of_, [](const auto& entry) { return entry.second == single_name; });
  if (opened.sharded_ && has_single && !names_single)
    throw UserError(fmt::format("{} has two models: {}, and the files that {} names", quote_path(folder), single_name,
                                index_name),
                    "model_folder", "remove one of the two");
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

std::vector<std::string> files_written(const std::set<std::string>& tensor_files) {
  std::vector<std::string> names(tensor_files.begin(), tensor_files.end());
  if (needs_index(tensor_files)) names.emplace_back(index_name);
  return names;
}

void add_tensor_files(FolderSave& save, const std::vector<PlacedTensor>& tensors) {
  std::map<std::string, std::vector<TensorView>> files;
  nlohmann::ordered_json index;
  std::uint64_t total = 0;
  std::map<std::string, std::string> weight_map;
  for (const PlacedTensor& placed : tensors) {
    files[placed.file].push_back(placed.tensor);
    weight_map[placed.tensor.name] = placed.file;
    total += static_cast<std::uint64_t>(count_elements(placed.tensor.shape)) * size_in_bytes(placed.tensor.dtype);
  }
  for (const auto& [name, content] : files) write_safetensors(save.file(name), content, {{"format", "pt"}});
  if (!needs_index(files)) return;
  index["metadata"]["total_size"] = total;
  index["weight_map"] = weight_map;
  save.write(std::string(index_name), index.dump(2) + "\n");
}

void write_tensor_folder(const std::filesystem::path& folder, const std::vector<PlacedTensor>& tensors) {
  FolderSave save(folder);
  add_tensor_files(save, tensors);
  save.commit(tensor_files_in(folder));
}

std::vector<std::string> tensor_files_in(const std::filesystem::path& folder) {
  std::set<std::string> names{std::string(single_name)};
  if (path_exists(folder / index_name)) {
    names.insert(std::string(index_name));
    try {
      for (const auto& [tensor, file] : read_index(folder)) names.insert(file);
    } catch (const UserError&) {  // an unreadable index names no files
    }
  }
  std::erase_if(names, [&](const std::string& name) { return !path_exists(folder / name); });
  return {names.begin(), names.end()};
}

}  // namespace lathe
