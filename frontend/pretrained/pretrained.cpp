#include "frontend/pretrained/pretrained.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/support/error.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/tensor_folder.h"

namespace lathe::pretrained {

namespace {

constexpr std::uint64_t largest_config = std::uint64_t{16} << 20;
constexpr std::string_view config_name = "config.json";

/// What the files call a parameter: its own name, or that without the prefix that older files leave out.
std::string tensor_name(const TensorFolder& files, const std::string& parameter, const std::string& prefix) {
  if (files.contains(parameter) || prefix.empty() || !parameter.starts_with(prefix)) return parameter;
  const std::string bare = parameter.substr(prefix.size());
  return files.contains(bare) ? bare : parameter;
}

bool is_ignored(const std::string& tensor, const std::vector<std::string>& ignored) {
  const std::string whole = "." + tensor;
  return std::any_of(ignored.begin(), ignored.end(), [&](const std::string& pattern) {
    return pattern.starts_with("*") ? whole.ends_with(pattern.substr(1)) : tensor == pattern;
  });
}

std::string at_most_six(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.begin() + std::min<std::ptrdiff_t>(6, std::ssize(names)));
  return fmt::format("{}{}", fmt::join(first, ", "), names.size() > 6 ? fmt::format(", ... ({})", names.size()) : "");
}

void check_shape(const TensorFolder& files, const std::string& tensor, const nn::Parameter& parameter) {
  const std::vector<std::int64_t> wanted = parameter.shape().evaluate({});
  const TensorInfo& info = files.info(tensor);
  if (!is_float(info.dtype))
    throw UserError(fmt::format("{}: tensor {} is {}, not a float", (files.path() / files.file_of(tensor)).string(),
                                tensor, name(info.dtype)),
                    "model_shape", "the file does not belong to this configuration");
  if (info.shape != wanted)
    throw UserError(fmt::format("{}: tensor {} is {}, {} says {}", (files.path() / files.file_of(tensor)).string(),
                                tensor, shape_to_string(info.shape), config_name, parameter.shape().to_string()),
                    "model_shape", "the file does not belong to this configuration");
}

}  // namespace

Pretrained load(const std::filesystem::path& folder) {
  const TensorFolder files = TensorFolder::open(folder);
  const auto path = folder / config_name;
  std::string text = read_file(path, largest_config);
  const Config config = Config::parse(text, path.string());
  MadeCausalLm made = make_causal_lm(config);
  Pretrained loaded{.folder = folder,
                    .config = config,
                    .config_text = std::move(text),
                    .model = std::move(made.model),
                    .weights = Parameters()};

  std::vector<std::string> missing, left_over;
  std::set<std::string, std::less<>> used;
  for (const nn::Parameter& parameter : loaded.model->parameters()) {
    const std::string tensor = tensor_name(files, parameter.name(), made.prefix);
    if (!files.contains(tensor)) {
      missing.push_back(tensor);
      continue;
    }
    check_shape(files, tensor, parameter);
    parameter.store_as(files.info(tensor).dtype);
    loaded.weights.set(parameter.name(), files.mapped(tensor));
    loaded.places.emplace(parameter.name(), Pretrained::Place{tensor, files.file_of(tensor)});
    used.insert(tensor);
  }
  if (!missing.empty())
    throw UserError(fmt::format("{} lacks tensors of the {} that {} describes: {}", folder.string(),
                                loaded.model->kind(), config_name, at_most_six(missing)),
                    "model_missing", "are all files there?");
  if (loaded.model->tied()) made.ignored.insert(made.ignored.end(), {"lm_head.weight", "embed_out.weight"});
  for (const std::string& tensor : files.names())
    if (!used.contains(tensor) && !is_ignored(tensor, made.ignored)) left_over.push_back(tensor);
  if (!left_over.empty())
    throw UserError(fmt::format("{} has tensors that the {} of {} has no use for: {}", folder.string(),
                                loaded.model->kind(), config_name, at_most_six(left_over)),
                    "model_left_over", "the files do not belong to this configuration");
  return loaded;
}

void save(const Pretrained& pretrained, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw UserError(fmt::format("cannot make {}: {}", folder.string(), failed.message()), "file_write",
                    "give another folder");
  std::vector<PlacedTensor> tensors;
  for (const auto& [parameter, place] : pretrained.places)
    tensors.push_back({place.file, view_of(place.tensor, pretrained.weights.get(parameter))});
  write_tensor_folder(folder, tensors);
  AtomicFile config(folder / config_name);
  config.write(pretrained.config_text);
  config.commit();
}

}  // namespace lathe::pretrained
