#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/pretrained/key_table.h"

/// The families of all kinds, and errors for directories of another one.
namespace lathe::pretrained {

enum class ModelKind : std::uint8_t { causal, encoder, seq2seq, image };

/// What every family has, whatever its kind.
struct FamilyRecord {
  std::string_view model_type;
  const KeyTable& (*keys)();
};

// The families of each kind, in the order of the documentation.
std::vector<FamilyRecord> causal_records();
std::vector<FamilyRecord> encoder_records();
std::vector<FamilyRecord> seq2seq_records();
std::vector<FamilyRecord> image_records();

/// Throws UserError [config_value] for a model_type that is no family of the kind: what it is, and which families
/// there are.
[[noreturn]] void reject_model_type(const Config& config, ModelKind wanted);

/// One note per object of a directory's config.json with keys that the original library does not read. Empty for a
/// family that Lathe does not know.
std::vector<std::string> unread_key_notes(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
