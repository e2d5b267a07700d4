#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/pretrained/lora/adapted_model.h"
#include "models/text/tokenizer/tokenizer.h"
#include "runtime/files/write/folder_save.h"

/// Reads and writes directories of models and adapters.
namespace lathe {

/// Returns the tokenizer of a model, checked against its embeddings. Throws UserErrors of Tokenizer::load.
Tokenizer tokenizer_of(const pretrained::AdaptedModel& model);

/// Returns the token that ends a text: eos_token of tokenizer_config.json, else the first token that ends generation,
/// else nullopt.
std::optional<TokenId> end_token(const pretrained::AdaptedModel& model, const Tokenizer& tokenizer);

/// Returns the names of a folder's tokenizer and chat template files, and generation_config.json, that exist.
std::vector<std::string> text_files_in(const std::filesystem::path& folder);

/// Throws UserError [output_folder] if the output directory is the input directory.
void check_output(const std::filesystem::path& output, const std::filesystem::path& input);

/// The folders whose text files are saved with a model. Files of later folders replace those of earlier ones.
using TextSources = std::vector<std::filesystem::path>;

/// Returns the folder of the model, then the folder of its text files if it is a different one.
TextSources text_sources(const std::filesystem::path& model, const std::filesystem::path& texts);

/// Checks that save_folder() can save `files` and the text files, before any work is done. Throws UserErrors of
/// FolderSave::check().
void check_save(const std::filesystem::path& output, FolderSave::Names files, const TextSources& texts);

/// Saves the files that `add` adds, and the text files, in one transaction. Throws UserErrors of FolderSave, of `add`
/// and of read_file().
void save_folder(const std::filesystem::path& output, const TextSources& texts,
                 const std::function<void(FolderSave&)>& add);

/// Calls pretrained::add_files() with each weight in the dtype of the model's own files.
void add_as_stored(FolderSave& save, const pretrained::ModelFiles& model);

}  // namespace lathe
