#pragma once

#include <filesystem>
#include <optional>

#include "frontend/pretrained/lora/lora.h"
#include "runtime/text/template/chat_template.h"
#include "runtime/text/tokenizer/tokenizer.h"

/// Directories of models and adapters, as commands take and write them.
namespace lathe::tools {

struct LoadedModel {
  pretrained::Pretrained model;
  std::optional<pretrained::Lora> lora = {};
  std::filesystem::path folder;  ///< of tokenizer and chat template
};
/// A model's directory, or an adapter's, whose adapter_config.json names that of the model: as it is written, or from
/// the adapter's directory. UserErrors of pretrained::load() and load_lora(); [adapter_base] where it names none.
LoadedModel load_model(const std::filesystem::path& folder);

/// The token that ends a text: eos_token of tokenizer_config.json, else eos_token_id of config.json; nothing where
/// there is none.
std::optional<TokenId> end_token(const LoadedModel& model, const Tokenizer& tokenizer);

/// The chat template of the directory; nothing where it has none.
std::optional<ChatTemplates> chat_templates(const std::filesystem::path& folder);

/// How many tokens the model was made for: "n_positions" or "max_position_embeddings"; nothing where it does not say.
std::optional<std::int64_t> longest_context(const pretrained::Config& config);

/// Copies the files of tokenizer and chat template that are there, and generation_config.json. UserErrors
/// [file_open], [file_read], [file_write].
void copy_text_files(const std::filesystem::path& from, const std::filesystem::path& to);

/// pretrained::save() with each weight in the dtype that the model's own files have it in.
void save_as_stored(const pretrained::Pretrained& model, const std::filesystem::path& folder);

}  // namespace lathe::tools
