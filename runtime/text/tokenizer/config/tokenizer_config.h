#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/text/tokenizer/encoding.h"

namespace lathe::text {

/// What Lathe does with a key of tokenizer_config.json.
enum class TokenizerKeyUse : std::uint8_t {
  used,      ///< the value changes the tokens, the decoded text or the chat template
  checked,   ///< tokenizer.json decides; a value that contradicts it is a UserError [config_value]
  refused,   ///< UserError [config_value], unless the value is null or false
  harmless,  ///< no value changes a result, for the rule's reason
};

struct TokenizerKey {
  std::string_view key;
  TokenizerKeyUse use = TokenizerKeyUse::used;
  std::string_view reason = {};  ///< of keys that are not used
};

/// The keys that transformers reads for the tokenizers of Lathe's families. It ignores others, and so does Lathe.
std::span<const TokenizerKey> tokenizer_keys();

/// Settings of tokenizer_config.json that tokenizer.json lacks.
struct TokenizerConfig {
  bool cleans_up = false;  ///< decoded text loses spaces before punctuation
  Side truncation_side = Side::right;
};

/// Reads tokenizer_config.json and special_tokens_map.json of a directory, where they are, as transformers 5 does
/// with a tokenizer.json. Special tokens that `tokenizer`, the content of tokenizer.json, lacks are appended to its
/// "added_tokens". UserError [config_value] for keys that Lathe does not know how to follow; [json], [file_open].
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory, nlohmann::json& tokenizer);

}  // namespace lathe::text
