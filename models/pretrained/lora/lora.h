#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/nn/low_rank.h"
#include "models/pretrained/lora/lora_config.h"
#include "models/pretrained/pretrained.h"
#include "runtime/compile.h"

/// Low-rank adapters (Hu et al. 2021) on a model of any kind, in the file format of the PEFT library:
///
///   auto llama = pretrained::load_pretrained<pretrained::CausalLm>("Llama-3.2-1B");
///   const auto lora = pretrained::add_lora(
///       llama, {.r = 16, .alpha = 32, .targets = std::vector<std::string>{"q_proj", "v_proj"}}, /*seed=*/1);
///   ...                                                // train nn::trainable(*llama.model): only the adapters
///   pretrained::save_lora(lora, llama.weights, "adapter");
namespace lathe::pretrained {

/// A model of any kind as the base of an adapter; converts from a PretrainedModel.
struct LoraBase {
  const nn::Module& model;
  ModelFiles& files;
  std::optional<nn::Linear> output_layer = {};  ///< excluded from "all-linear"
  std::optional<nn::Parameter> tied = {};       ///< the embedding table, if the output layer shares it
  std::string output_name = {};                 ///< of the output layer in PEFT, which a tied one has only there
  /// Prefix of names here but not in PEFT, which adapts the model below the output layer: "bert." of a BertModel.
  std::string root = {};

  template <class Model>
  LoraBase(PretrainedModel<Model>& base)  // NOLINT(google-explicit-constructor)
      : model(*base.model), files(base) {
    if constexpr (requires { base.model->output_layer(); }) output_layer = base.model->output_layer();
    if constexpr (requires { base.model->tied(); }) tied = base.model->tied();
    if constexpr (requires { base.model->output_name(); }) output_name = base.model->output_name();
    if constexpr (requires { base.model->root_name(); }) root = base.model->root_name();
  }

  /// Returns PEFT's name for a module or parameter of the model.
  std::string name_of(std::string_view path) const {
    return std::string(path.starts_with(root) ? path.substr(root.size()) : path);
  }
};

/// The adapters of a model.
struct Lora {
  LoraConfig config;
  std::vector<nn::Linear> layers;  ///< layers with an adapter, in model order
  std::string root = {};           ///< see LoraBase

  /// A parameter of the model that is trained and saved as a whole.
  struct Whole {
    nn::Parameter parameter;
    DType stored;  ///< its dtype in the model's own files
  };
  std::vector<Whole> whole = {};
  /// Frozen parameters of the model whose values the adapter's file replaces, with their names in the file. PEFT
  /// saves the weights of output layers that have an adapter, and of tables that it has enlarged.
  std::vector<std::pair<std::string, nn::Parameter>> replaced = {};

  /// Returns all trained parameters: A and B of each layer, then those of modules_to_save.
  std::vector<nn::Parameter> parameters() const;
};

/// Adds adapters to the layers that the configuration names, freezes everything else except modules_to_save, and
/// initializes the adapters. Values are f32, also for modules_to_save that have fewer bits in the model. Throws
/// UserErrors [adapter_target] if a name matches no module, a module that is not linear, or a table that the output
/// layer shares; [adapter_pattern]; [parameter_name] if a layer has an adapter already.
Lora add_lora(const LoraBase& base, const LoraConfig& config, std::uint64_t seed);

/// The same with values from a directory written by PEFT or save_lora(): adapter_config.json and
/// adapter_model.safetensors. Throws UserErrors of read_lora_config(), add_lora() and SafetensorsFile;
/// [adapter_missing] for tensors that the file lacks, [adapter_left_over] for tensors without a layer,
/// [adapter_shape].
Lora load_lora(const LoraBase& base, const std::filesystem::path& folder);

/// Writes adapter_config.json and adapter_model.safetensors, in PEFT's format, in one transaction (FolderSave).
/// Creates the folder if needed. Throws UserErrors of FolderSave and write_safetensors().
void save_lora(const Lora& lora, const Parameters& weights, const std::filesystem::path& folder);

/// Returns the names of the files that add_files() adds.
std::vector<std::string> files_written(const Lora& lora);
/// Adds the adapter's files to a save. Throws UserErrors of write_safetensors(), [file_write].
void add_files(FolderSave& save, const Lora& lora, const Parameters& weights);

/// Adds the adapters to the weights of their layers, W + scale * B A, computed in f32 (f64 if W is f64), and removes
/// them from the model; save() then writes a plain model directory. No executable may be using the weights. Throws
/// UserErrors of compile().
void merge_lora(const Lora& lora, const LoraBase& base, const CompileOptions& options = {});

}  // namespace lathe::pretrained
