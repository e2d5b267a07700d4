#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/pretrained/lora/adapted_model.h"
#include "runtime/files/folder_save.h"
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

/// The names of the files of tokenizer and chat template that a folder has, and generation_config.json.
std::vector<std::string> text_files_in(const std::filesystem::path& folder);

/// Throws UserError [output_folder] where a command would write into a directory that it reads.
void check_output(const std::filesystem::path& output, const std::filesystem::path& input);

/// The folders whose text files are saved with a model; those of later ones replace those of earlier ones.
using TextSources = std::vector<std::filesystem::path>;

/// The folder of the model, then the one that its texts come from if that is another one.
TextSources text_sources(const std::filesystem::path& model, const std::filesystem::path& texts);

/// Checks that save_folder() could save `files` with the text files, before any work is done. UserErrors of
/// FolderSave::check().
void check_save(const std::filesystem::path& output, FolderSave::Names files, const TextSources& texts);

/// Saves the files that `add` adds and the text files, as one transaction. UserErrors of FolderSave, of `add` and of
/// read_file().
void save_folder(const std::filesystem::path& output, const TextSources& texts,
                 const std::function<void(FolderSave&)>& add);

/// pretrained::add_files() with each weight in the dtype that the model's own files have it in.
void add_as_stored(FolderSave& save, const pretrained::ModelFiles& model);

}  // namespace lathe::tools
