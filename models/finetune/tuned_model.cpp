#include "models/finetune/tuned_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/initial_values.h"
#include "ir/support/error.h"
#include "models/finetune/step_graph.h"
#include "runtime/files/paths.h"
#include "runtime/files/sha256.h"

namespace lathe {

TunedModel::TunedModel(const FineTuneOptions& options)
    : output_(options.output),
      lora_(options.lora),
      seed_(options.seed),
      folders_(pretrained::find_adapted(options.model, options.adapter)) {
  for (const std::filesystem::path& input : {folders_.model, folders_.adapter}) check_output(output_, input);
  if (lora_ && !folders_.adapter.empty())
    throw UserError(fmt::format("lora: the adapter in {} has its own settings", folders_.adapter.string()),
                    "lora_option", "leave out lora to train it further, or give the model without an adapter");
}

void TunedModel::load() { loaded_.emplace(pretrained::load_adapted<pretrained::CausalLm>(folders_)); }

void TunedModel::prepare_to_train() {
  if (lora_) loaded_->lora = pretrained::add_lora(loaded_->model, *lora_, seed_);
  if (loaded_->lora) loaded_->lora->config.base_model = absolute_path(folders_.model).lexically_normal().string();
  trained_ = keep_trained_in_f32(graph());
}

std::int64_t TunedModel::parameters() const {
  std::int64_t all = 0;
  for (const nn::Parameter& parameter : graph().parameters()) all += parameter.shape().numel().evaluate({});
  return all;
}

std::int64_t TunedModel::trained_parameters() const {
  std::int64_t trained = 0;
  for (const nn::Parameter& parameter : graph().parameters())
    if (!parameter.is_frozen()) trained += parameter.shape().numel().evaluate({});
  return trained;
}

std::string TunedModel::config_hash() const { return sha256_hex(loaded_->model.config_text); }

std::string TunedModel::adapter_text() const {
  if (!loaded_->lora) return "none";
  pretrained::LoraConfig lora = loaded_->lora->config;
  lora.base_model.clear();  // a directory may be moved
  return pretrained::lora_config_text(lora, false);
}

std::string TunedModel::weights_digest() const {
  constexpr std::size_t most = 4096;
  const Parameters& weights = loaded_->model.weights;
  Sha256 hash;
  for (const std::string& name : weights.names()) {
    const HostTensor& value = weights.get(name);
    hash.update(fmt::format("{} {}{}\n", name, lathe::name(value.dtype()), shape_to_string(value.shape())));
    hash.update(std::span(value.data(), std::min(most, value.bytes())));
  }
  return to_hex(hash.finish());
}

HostTensor TunedModel::start_of(const ir::Graph& step, const std::string& name, std::uint64_t seed) const {
  const Parameters& weights = loaded_->model.weights;
  if (!weights.contains(name)) return initial_value(step, name, {}, seed);
  const HostTensor& value = weights.get(name);
  const bool is_full = value.dtype() == f32 || value.dtype() == f64;
  return is_full || std::ranges::count(trained_, name) == 0 ? weights.share(name) : value.cast(f32);
}

Parameters TunedModel::whole_weights(const Trainer& trainer, const AveragedWeights& averages) const {
  Tensors trained = averages.wholes(trainer, trained_);
  Parameters weights = loaded_->model.weights.borrowed();
  weights.set(std::move(trained));
  return weights;
}

void TunedModel::check_output_folder() const {
  check_save(output_, loaded_->lora ? files_written(*loaded_->lora) : files_written(loaded_->model), texts());
}

void TunedModel::write(Parameters weights) {
  loaded_->model.weights = std::move(weights);
  save_folder(output_, texts(), [&](FolderSave& save) {
    if (loaded_->lora)
      add_files(save, *loaded_->lora, loaded_->model.weights);
    else
      add_as_stored(save, loaded_->model);
  });
}

}  // namespace lathe
