#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/pretrained/family.h"

/// The model families of all kinds, and errors for directories of another kind.
namespace lathe::pretrained {

/// In the order of Family::make.
enum class ModelKind : std::uint8_t { causal, encoder, seq2seq, image };

ModelKind kind_of(const Family& family);

/// Returns all families, in the order of families.def.
const std::vector<Family>& all_families();

/// Returns the model types of all families of a kind.
std::vector<std::string> model_types(ModelKind kind);

/// Returns the family of a model_type; null for none.
const Family* find_family(std::string_view model_type);

/// Returns the kind of model that config.json describes; nothing for an unknown family.
std::optional<ModelKind> kind_of(const Config& config);

/// Returns the family that config.json names. Throws UserError [config_value] if there is none of the `wanted` kind.
/// The error says what the model is, and lists the families.
const Family& family_of(const Config& config, ModelKind wanted);

/// Returns the file of sentence-transformers with the text options of an encoder: "sentence_bert_config.json".
std::string sentence_file(std::string_view model_type);

/// Returns one note per object in a directory's config.json that has keys the original library does not read. Empty
/// for an unknown family.
std::vector<std::string> unread_key_notes(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
