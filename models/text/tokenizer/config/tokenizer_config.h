#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "models/text/tokenizer/encoding.h"

namespace lathe::text {

/// How Lathe treats a key of tokenizer_config.json.
enum class TokenizerKeyUse : std::uint8_t {
  used,      ///< the value affects tokens, decoded text or the chat template
  checked,   ///< tokenizer.json decides; a contradicting value throws UserError [config_value]
  refused,   ///< throws UserError [config_value], unless the value is null or false
  harmless,  ///< no value affects results; `reason` says why
};

struct TokenizerKey {
  std::string_view key;
  TokenizerKeyUse use = TokenizerKeyUse::used;
  std::string_view reason = {};  ///< for keys that are not used
};

/// Returns the keys that transformers reads for the tokenizers of the supported model families. Other keys are
/// ignored.
std::span<const TokenizerKey> tokenizer_keys();

/// Settings of tokenizer_config.json that tokenizer.json lacks.
struct TokenizerConfig {
  bool cleans_up = false;  ///< remove spaces before punctuation from decoded text
  Side truncation_side = Side::right;
};

/// Reads tokenizer_config.json and special_tokens_map.json of a directory, if they exist, as transformers 5 does when
/// there is a tokenizer.json. Special tokens that are missing in `tokenizer`, the content of tokenizer.json, are
/// appended to its "added_tokens". Throws UserError [config_value] for unsupported keys; [json], [file_open].
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory, nlohmann::json& tokenizer);

}  // namespace lathe::text
