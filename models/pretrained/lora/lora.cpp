#include "models/pretrained/lora/lora.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/initial_values.h"
#include "ir/support/error.h"
#include "models/pretrained/folder_kind.h"
#include "models/pretrained/lora/attach.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "runtime/files/write/folder_save.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view prefix = "base_model.model.", tensors_name = "adapter_model.safetensors",
                           adapter_config_name = "adapter_config.json";

/// Returns a parameter's name in the file; `root` is the prefix to omit.
std::string file_name(const nn::Parameter& parameter, std::string_view root) {
  std::string_view name = parameter.name();
  if (name.starts_with(root)) name.remove_prefix(root.size());
  return fmt::format("{}{}", prefix, name);
}

/// Sets a parameter to the value of a tensor in the file.
void take(const SafetensorsFile& file, const std::string& name, const nn::Parameter& parameter,
          const LoraBase& base) {
  if (!file.contains(name))
    throw UserError(fmt::format("{} lacks the tensor {}", file.path().string(), name), "adapter_missing",
                    fmt::format("it does not belong to this {} or this model", adapter_config_name));
  const TensorInfo& info = file.info(name);
  if (!is_float(info.dtype) || info.shape != parameter.shape().evaluate({}))
    throw UserError(fmt::format("{}: tensor {} is {}{}, the model and {} say {}", file.path().string(), name,
                                lathe::name(info.dtype), shape_to_string(info.shape), adapter_config_name,
                                parameter.shape().to_string()),
                    "adapter_shape", "the adapter belongs to another model");
  parameter.store_as(info.dtype);
  base.files.weights.set(parameter.name(), file.tensor(name));
}

/// Returns the name of the model's parameter that a tensor of the file replaces, or nothing. PEFT calls the weight of
/// a layer with an adapter "lm_head.base_layer.weight".
std::optional<std::string> replaced_parameter(const std::string& tensor, const LoraBase& base) {
  if (!tensor.starts_with(prefix)) return std::nullopt;
  std::string bare = tensor.substr(prefix.size());
  constexpr std::string_view inner = ".base_layer.";
  if (const std::size_t at = bare.find(inner); at != std::string::npos) bare.replace(at, inner.size(), ".");
  for (const std::string& name : {base.root + bare, bare})
    if (base.files.places.contains(name)) return name;
  return std::nullopt;
}

/// Takes the tensors of the file that are not adapters. A tensor without a parameter is an error.
void take_rest(const SafetensorsFile& file, Lora& lora, const LoraBase& base) {
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : lora.parameters()) names.push_back(file_name(parameter, base.root));
  std::string left_over;
  for (const std::string& tensor : file.names()) {
    if (std::find(names.begin(), names.end(), tensor) != names.end()) continue;
    if (const auto name = replaced_parameter(tensor, base)) {
      lora.replaced.emplace_back(tensor, base.model.parameter(*name));
      take(file, tensor, lora.replaced.back().second, base);
    } else {
      left_over += (left_over.empty() ? "" : ", ") + tensor;
    }
  }
  if (!left_over.empty())
    throw UserError(fmt::format("{} has tensors that no layer of the {} has a use for: {}", file.path().string(),
                                base.model.kind(), left_over),
                    "adapter_left_over",
                    fmt::format("it does not belong to this {} or this model", adapter_config_name));
}

}  // namespace

std::vector<nn::Parameter> Lora::parameters() const {
  std::vector<nn::Parameter> all;
  for (const nn::Linear& layer : layers) {
    all.push_back(layer.low_rank()->a());
    all.push_back(layer.low_rank()->b());
  }
  for (const Whole& each : whole) all.push_back(each.parameter);
  return all;
}

Lora add_lora(const LoraBase& base, const LoraConfig& config, std::uint64_t seed) {
  check_names(base, config);
  Lora lora = attach(base, config);
  for (const nn::Linear& layer : lora.layers)
    for (const nn::Parameter& parameter : {layer.low_rank()->a(), layer.low_rank()->b()})
      base.files.weights.set(parameter.name(), initial_value(parameter.init(), parameter.name(), parameter.dtype(),
                                                             parameter.shape().evaluate({}), seed));
  for (const Lora::Whole& each : lora.whole) {
    const nn::Parameter& parameter = each.parameter;
    if (each.stored == at_least_f32(each.stored)) continue;
    parameter.store_as(f32);
    base.files.weights.set(parameter.name(), base.files.weights.get(parameter.name()).cast(f32));
  }
  return lora;
}

Lora load_lora(const LoraBase& base, const std::filesystem::path& folder) {
  require_model_folder(folder);
  const LoraConfig config = read_lora_config(folder);
  if (!path_exists(folder / tensors_name)) no_adapter_weights(folder);
  const SafetensorsFile file = SafetensorsFile::open(folder / tensors_name);
  Lora lora = attach(base, config);
  for (const nn::Parameter& parameter : lora.parameters())
    take(file, file_name(parameter, base.root), parameter, base);
  take_rest(file, lora, base);
  return lora;
}

void add_files(FolderSave& save, const Lora& lora, const Parameters& weights) {
  std::vector<TensorView> tensors;
  for (const nn::Parameter& parameter : lora.parameters())
    tensors.push_back(view_of(file_name(parameter, lora.root), weights.get(parameter.name())));
  for (const auto& [name, parameter] : lora.replaced) tensors.push_back(view_of(name, weights.get(parameter.name())));
  write_safetensors(save.file(std::string(tensors_name)), tensors, {{"format", "pt"}});
  const bool in_out =
      std::any_of(lora.layers.begin(), lora.layers.end(), [](const nn::Linear& layer) { return layer.in_out(); });
  save.write(std::string(adapter_config_name), lora_config_text(lora.config, in_out));
}

std::vector<std::string> files_written(const Lora& /*lora*/) {
  return {std::string(tensors_name), std::string(adapter_config_name)};
}

void save_lora(const Lora& lora, const Parameters& weights, const std::filesystem::path& folder) {
  FolderSave save(folder);
  add_files(save, lora, weights);
  save.commit(model_files_in(folder));
}

void merge_lora(const Lora& lora, const LoraBase& base, const CompileOptions& options) {
  Graph g("merge");
  for (const nn::Linear& layer : lora.layers) {
    const Tensor weight = layer.weight().in(g), sum = weight.to(at_least_f32(weight.dtype()));
    g.update(weight, (sum + layer.low_rank()->delta(sum)).to(weight.dtype()));
  }
  CompileOptions merging = options;
  merging.parameters = base.files.weights;
  (void)compile(g.finish(), merging).run({});
  for (const nn::Linear& layer : lora.layers) {
    base.files.weights.erase(layer.low_rank()->a().name());
    base.files.weights.erase(layer.low_rank()->b().name());
    layer.remove_low_rank();
  }
  for (const Lora::Whole& each : lora.whole) {
    base.files.weights.set(each.parameter.name(), base.files.weights.get(each.parameter.name()).cast(each.stored));
    each.parameter.store_as(each.stored);
  }
}

}  // namespace lathe::pretrained
