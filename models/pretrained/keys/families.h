#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/pretrained/key_table.h"

/// The model families of all kinds, and errors for directories of another kind.
namespace lathe::pretrained {

enum class ModelKind : std::uint8_t { causal, encoder, seq2seq, image };

/// Fields of every family, regardless of its kind.
struct FamilyRecord {
  std::string_view model_type;
  const KeyTable& (*keys)();
};

// The families of each kind, in the order of the docs.
std::vector<FamilyRecord> causal_records();
std::vector<FamilyRecord> encoder_records();
std::vector<FamilyRecord> seq2seq_records();
std::vector<FamilyRecord> image_records();

/// Throws UserError [config_value] for a model_type that is not a family of the `wanted` kind. The error says what it
/// is and lists the families.
[[noreturn]] void reject_model_type(const Config& config, ModelKind wanted);

/// Returns one note per object in a directory's config.json that has keys the original library does not read. Empty
/// for an unknown family.
std::vector<std::string> unread_key_notes(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
