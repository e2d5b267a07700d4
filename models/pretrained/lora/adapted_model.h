#pragma once

#include <filesystem>
#include <optional>

#include "models/pretrained/lora/lora.h"

namespace lathe::pretrained {

/// A model of some kind (a PretrainedModel), and its adapter if it has one.
template <class Base>
struct Adapted {
  Base model;
  std::optional<Lora> lora = {};
  /// Directory of tokenizer, chat template and generation_config.json: the adapter's if it has a tokenizer.json, else
  /// the model's.
  std::filesystem::path text_folder;
};
using AdaptedModel = Adapted<Pretrained>;

/// Directories of a model and its adapter; an empty path for no adapter.
struct AdaptedFolders {
  std::filesystem::path model, adapter;

  std::filesystem::path text_folder() const;
};

/// Finds the directories for a model's directory, or for an adapter's as written by PEFT and `lathe finetune`. An
/// adapter's adapter_config.json names the model's directory, as a path on its own or relative to the adapter. With
/// `adapter`, `folder` is the model's directory, whatever the adapter names. Throws UserErrors [adapter_base] if an
/// adapter names no directory, [model_folder] for a directory that holds neither, or both a model with its weights
/// and an adapter; those of require_model_folder().
AdaptedFolders find_adapted(const std::filesystem::path& folder, const std::filesystem::path& adapter = {});

/// Loads the model and attaches the adapter:
///
///   auto t5 = pretrained::load_adapted<pretrained::Seq2SeqLm>(pretrained::find_adapted("adapter"));
///
/// Throws the UserErrors of load_pretrained() and load_lora().
template <class Model>
Adapted<PretrainedModel<Model>> load_adapted(const AdaptedFolders& folders, const LoadOptions& options = {}) {
  Adapted<PretrainedModel<Model>> loaded{.model = load_pretrained<Model>(folders.model, options),
                                         .text_folder = folders.text_folder()};
  if (!folders.adapter.empty()) loaded.lora = load_lora(loaded.model, folders.adapter);
  return loaded;
}

}  // namespace lathe::pretrained
