#include "models/pretrained/model_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "ir/support/error.h"
#include "models/pretrained/family.h"
#include "models/pretrained/folder_kind.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/tensor_folder.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view model_config_name = "config.json";

/// Returns the names that a parameter may have in files, the model's own first.
std::vector<std::string> candidates(const std::string& parameter, const TensorNames& names) {
  std::vector<std::string> found{parameter};
  for (const auto& [ours, theirs] : names.others)
    if (parameter.ends_with(ours)) found.push_back(parameter.substr(0, parameter.size() - ours.size()) + theirs);
  if (names.prefix.empty()) return found;
  for (std::size_t i = 0, full = found.size(); i < full; ++i)
    if (found[i].starts_with(names.prefix)) found.push_back(found[i].substr(names.prefix.size()));
  return found;
}

std::optional<std::string> tensor_of(const TensorFolder& tensors, const std::string& parameter,
                                     const TensorNames& names) {
  for (std::string& name : candidates(parameter, names))
    if (tensors.contains(name)) return std::move(name);
  return std::nullopt;
}

bool matches(const std::string& tensor, const std::string& pattern) {
  if (pattern.starts_with("*")) return ("." + tensor).ends_with(pattern.substr(1));
  if (pattern.ends_with("*")) return tensor.starts_with(pattern.substr(0, pattern.size() - 1));
  return tensor == pattern;
}

bool is_ignored(const std::string& tensor, const std::vector<std::string>& ignored) {
  return std::any_of(ignored.begin(), ignored.end(),
                     [&](const std::string& pattern) { return matches(tensor, pattern); });
}

std::string at_most_six(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.begin() + std::min<std::ptrdiff_t>(6, std::ssize(names)));
  return fmt::format("{}{}", fmt::join(first, ", "), names.size() > 6 ? fmt::format(", ... ({})", names.size()) : "");
}

void check_shape(const TensorFolder& tensors, const std::string& tensor, const nn::Parameter& parameter) {
  const std::vector<std::int64_t> wanted = parameter.shape().evaluate({});
  const TensorInfo& info = tensors.info(tensor);
  const std::string file = (tensors.path() / tensors.file_of(tensor)).string();
  if (!is_float(info.dtype))
    throw UserError(fmt::format("{}: tensor {} is {}, not a float", file, tensor, name(info.dtype)), "model_shape",
                    "the file does not belong to this configuration");
  if (info.shape != wanted)
    throw UserError(fmt::format("{}: tensor {} is {}, {} says {}", file, tensor, shape_to_string(info.shape),
                                model_config_name, parameter.shape().to_string()),
                    "model_shape", "the file does not belong to this configuration");
}

}  // namespace

ModelFiles read_config(const std::filesystem::path& folder) {
  const auto path = folder / model_config_name;
  require_model_folder(folder);
  if (!path_exists(path)) no_config(folder);
  std::string text = read_file(path, largest_config);
  Config config = Config::parse(text, path.string());
  return {.folder = folder, .config = std::move(config), .config_text = std::move(text)};
}

const std::string* read_other(ModelFiles& files, const std::string& path) {
  if (!path_exists(files.folder / path)) return nullptr;
  return &files.others.insert_or_assign(path, read_file(files.folder / path, largest_config)).first->second;
}

bool differ(const TensorFolder& tensors, const std::string& first, const std::string& second,
            const TensorNames& names) {
  const auto one = tensor_of(tensors, first, names), other = tensor_of(tensors, second, names);
  if (!one || !other || *one == *other) return false;
  const TensorInfo &a = tensors.info(*one), &b = tensors.info(*other);
  if (a.dtype != b.dtype || a.shape != b.shape) return true;
  const std::span x = tensors.file(*one).view(*one), y = tensors.file(*other).view(*other);
  return x.data() != y.data() && !std::equal(x.begin(), x.end(), y.begin(), y.end());
}

void set_config(ModelFiles& files, std::string_view key, std::string_view value) {
  files.config = files.config.with(key, value);
  files.config_text = with_json_key(files.config_text, key, value);
}

bool has_tensor(const TensorFolder& tensors, const std::string& parameter, const TensorNames& names) {
  return tensor_of(tensors, parameter, names).has_value();
}

void take_weights(ModelFiles& files, const TensorFolder& tensors, const nn::Module& model, const TensorNames& names) {
  std::vector<std::string> missing, left_over;
  std::set<std::string, std::less<>> used;
  for (const nn::Parameter& parameter : model.parameters()) {
    const auto tensor = tensor_of(tensors, parameter.name(), names);
    if (!tensor) {
      missing.push_back(parameter.name());
      continue;
    }
    check_shape(tensors, *tensor, parameter);
    parameter.store_as(tensors.info(*tensor).dtype);
    files.weights.map(parameter.name(), tensors.file(*tensor), *tensor);
    files.places.emplace(parameter.name(), ModelFiles::Place{*tensor, tensors.file_of(*tensor)});
    used.insert(*tensor);
  }
  if (!missing.empty())
    throw UserError(fmt::format("{} lacks tensors of the {} that {} describes: {}", files.folder.string(),
                                model.kind(), model_config_name, at_most_six(missing)),
                    "model_missing", "are all files there?");
  for (const std::string& tensor : tensors.names())
    if (!used.contains(tensor) && !is_ignored(tensor, names.ignored)) left_over.push_back(tensor);
  if (!left_over.empty())
    throw UserError(fmt::format("{} has tensors that the {} of {} has no use for: {}", files.folder.string(),
                                model.kind(), model_config_name, at_most_six(left_over)),
                    "model_left_over", "the files do not belong to this configuration");
}

}  // namespace lathe::pretrained
