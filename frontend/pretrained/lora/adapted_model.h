#pragma once

#include <filesystem>
#include <optional>

#include "frontend/pretrained/lora/lora.h"

namespace lathe::pretrained {

/// A model of some kind, a PretrainedModel, and the adapter on it where there is one.
template <class Base>
struct Adapted {
  Base model;
  std::optional<Lora> lora = {};
  /// Of tokenizer, chat template and generation_config.json: the adapter's where it has a tokenizer.json, else the
  /// model's.
  std::filesystem::path text_folder;
};
using AdaptedModel = Adapted<Pretrained>;

/// Where a model lies, and the adapter on it; an empty path where there is none.
struct AdaptedFolders {
  std::filesystem::path model, adapter;

  std::filesystem::path text_folder() const;
};

/// Of a model's directory, or that of an adapter as PEFT and `lathe finetune` write it, whose adapter_config.json
/// names that of its model: as it is written there, or from the adapter's directory on. With `adapter` the directory
/// is the model's, whatever the adapter names. UserErrors: [adapter_base] where an adapter names no directory,
/// [model_folder] for a directory that holds neither, or both a model with its weights and an adapter; those of
/// require_model_folder().
AdaptedFolders find_adapted(const std::filesystem::path& folder, const std::filesystem::path& adapter = {});

/// Loads the model by one of the functions that do, and puts the adapter on it:
///
///   auto t5 = pretrained::load_adapted(pretrained::find_adapted("adapter"),
///                                      [](const auto& folder) { return pretrained::load_seq2seq_lm(folder); });
///
/// UserErrors of that function and of load_lora().
template <class Load>
auto load_adapted(const AdaptedFolders& folders, const Load& load) {
  Adapted<decltype(load(folders.model))> loaded{.model = load(folders.model), .text_folder = folders.text_folder()};
  if (!folders.adapter.empty()) loaded.lora = load_lora(loaded.model, folders.adapter);
  return loaded;
}

/// A decoder-only language model as find_adapted() finds it. UserErrors of find_adapted(), load() and load_lora().
AdaptedModel load_adapted(const std::filesystem::path& folder, const std::filesystem::path& adapter = {},
                          const LoadOptions& options = {});

}  // namespace lathe::pretrained
