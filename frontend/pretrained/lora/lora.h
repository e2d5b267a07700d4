#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/nn/low_rank.h"
#include "frontend/pretrained/lora/lora_config.h"
#include "frontend/pretrained/pretrained.h"
#include "runtime/executable.h"

/// Low-rank adapters (Hu et al. 2021) on a model of any kind, in the files of the library PEFT:
///
///   auto llama = pretrained::load("Llama-3.2-1B");
///   const auto lora = pretrained::add_lora(
///       llama, {.r = 16, .alpha = 32, .targets = std::vector<std::string>{"q_proj", "v_proj"}}, /*seed=*/1);
///   ...                                                // train nn::trainable(*llama.model): the adapters alone
///   pretrained::save_lora(lora, llama.weights, "adapter");
namespace lathe::pretrained {

/// A model of any kind as adapters see it; a PretrainedModel becomes one.
struct LoraBase {
  const nn::Module& model;
  ModelFiles& files;
  std::optional<nn::Linear> output_layer = {};  ///< which "all-linear" leaves out
  std::optional<nn::Parameter> tied = {};       ///< the table of embeddings that is the output layer's too
  /// Starts names here but not in PEFT, which adapts the model below the output layer: "bert." of a BertModel.
  std::string root = {};

  template <class Model>
  LoraBase(PretrainedModel<Model>& base)  // NOLINT(google-explicit-constructor)
      : model(*base.model), files(base) {
    if constexpr (requires { base.model->output_layer(); }) output_layer = base.model->output_layer();
    if constexpr (requires { base.model->tied(); }) tied = base.model->tied();
    if constexpr (requires { base.model->root_name(); }) root = base.model->root_name();
  }

  /// What PEFT calls a module or parameter of the model.
  std::string name_of(std::string_view path) const {
    return std::string(path.starts_with(root) ? path.substr(root.size()) : path);
  }
};

/// The adapters of a model.
struct Lora {
  LoraConfig config;
  std::vector<nn::Linear> layers;  ///< those that have an adapter, in the order of the model
  std::string root = {};           ///< of LoraBase

  /// A parameter of the model that is trained and saved as a whole.
  struct Whole {
    nn::Parameter parameter;
    DType stored;  ///< as the model's own files have it
  };
  std::vector<Whole> whole = {};
  /// Frozen parameters of the model whose values the file of the adapter replaces, with their names there: PEFT saves
  /// the weights of output layers that have an adapter, and of tables that it has made larger.
  std::vector<std::pair<std::string, nn::Parameter>> replaced = {};

  /// All that is trained: A and B of each layer, then those of modules_to_save.
  std::vector<nn::Parameter> parameters() const;
};

/// Gives the layers that the configuration names an adapter, freezes everything else but modules_to_save, and sets
/// the adapters' values as they start. Values are f32, of modules_to_save too where the model has fewer bits.
/// UserErrors: [adapter_target] where a name is that of no module, of one that is no linear layer, or of a table that
/// the output layer shares; [adapter_pattern]; [parameter_name] where a layer has an adapter already.
Lora add_lora(const LoraBase& base, const LoraConfig& config, std::uint64_t seed);

/// The same with the values of a directory that PEFT or save_lora() wrote: adapter_config.json and
/// adapter_model.safetensors. UserErrors of read_lora_config(), add_lora() and SafetensorsFile; [adapter_missing] for
/// tensors that the file lacks, [adapter_left_over] for tensors that belong to no layer, [adapter_shape].
Lora load_lora(const LoraBase& base, const std::filesystem::path& folder);

/// Writes adapter_config.json and adapter_model.safetensors, which PEFT reads, in one transaction (FolderSave). The
/// folder is created where it is missing. UserErrors of FolderSave and write_safetensors().
void save_lora(const Lora& lora, const Parameters& weights, const std::filesystem::path& folder);

/// The names of the files that add_files() adds.
std::vector<std::string> files_written(const Lora& lora);
/// Adds the adapter's files to a save. UserErrors of write_safetensors(), [file_write].
void add_files(FolderSave& save, const Lora& lora, const Parameters& weights);

/// Adds the adapters to the weights of their layers, W + scale * B A, computed in f32 (f64 where W is f64), and takes
/// them off the model: save() then writes a plain directory. No executable may work on the weights. UserErrors of
/// compile().
void merge_lora(const Lora& lora, const LoraBase& base, const CompileOptions& options = {});

}  // namespace lathe::pretrained
