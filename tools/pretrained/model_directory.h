#pragma once

#include <filesystem>
#include <optional>

#include "frontend/pretrained/lora/adapted_model.h"
#include "runtime/text/tokenizer/tokenizer.h"

namespace CLI {
class App;
}

/// Directories of models and adapters, as commands take and write them.
namespace lathe::tools {

/// Adds --adapter: the directory of an adapter on the model that a command is given.
void add_adapter_option(CLI::App& command, std::filesystem::path& adapter);

/// The tokenizer of a model, for its embeddings. UserErrors of Tokenizer::load.
Tokenizer tokenizer_of(const pretrained::AdaptedModel& model);

/// The token that ends a text: eos_token of tokenizer_config.json, else the first that ends generation; nothing where
/// there is none.
std::optional<TokenId> end_token(const pretrained::AdaptedModel& model, const Tokenizer& tokenizer);

/// Copies the files of tokenizer and chat template that are there, and generation_config.json. UserErrors
/// [file_open], [file_read], [file_write].
void copy_text_files(const std::filesystem::path& from, const std::filesystem::path& to);

/// Throws UserError [output_folder] where a command would write into a directory that it reads.
void check_output(const std::filesystem::path& output, const std::filesystem::path& input);

/// pretrained::save() with each weight in the dtype that the model's own files have it in.
void save_as_stored(const pretrained::ModelFiles& model, const std::filesystem::path& folder);

}  // namespace lathe::tools
