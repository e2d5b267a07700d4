#include "models/text/tokenizer/config/tokenizer_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/strict_json.h"

namespace lathe::text {

namespace {

using nlohmann::json;

constexpr std::uint64_t largest_config = std::uint64_t{1} << 28;  // bytes
constexpr int deepest_config = 64;
constexpr const char* special_names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token"};

json read_object(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return json::object();
  json read = parse_strict_json(read_file(path, largest_config), path.string(), deepest_config);
  if (!read.is_object()) throw UserError(fmt::format("{}: not an object", path.string()), "json");
  return read;
}

[[noreturn]] void reject(std::string_view key, const json& value, std::string_view reason) {
  throw UserError(fmt::format("tokenizer_config.json: {} is {}: {}", key, quote(value.dump()), reason),
                  "config_value", "remove the key, or change tokenizer.json so that both agree");
}

/// Returns a string member of an object; empty if it does not exist.
std::string text_member(const json& part, const char* name) {
  if (!part.is_object()) return {};
  const auto found = part.find(name);
  return found != part.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Returns a boolean member of an object, or `otherwise`.
bool flag_member(const json& part, const char* name, bool otherwise) {
  if (!part.is_object()) return otherwise;
  const auto found = part.find(name);
  return found != part.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

/// Returns the first object of this type in tokenizer.json, in depth-first order; null if there is none.
const json* find_part(const json& part, std::string_view type) {
  if (text_member(part, "type") == type) return &part;
  if (part.is_structured())
    for (const json& inside : part)
      if (const json* found = inside.is_structured() ? find_part(inside, type) : nullptr) return found;
  return nullptr;
}

const json& part_of(const json& tokenizer, const char* name) {
  static const json none;
  const auto found = tokenizer.find(name);
  return found == tokenizer.end() ? none : *found;
}

/// Returns whether tokenizer.json prepends a space to texts; nullopt if no part specifies it.
std::optional<bool> prefix_space(const json& tokenizer) {
  const json& splits = part_of(tokenizer, "pre_tokenizer");
  if (const json* bytes = find_part(splits, "ByteLevel")) return flag_member(*bytes, "add_prefix_space", true);
  if (const json* space = find_part(splits, "Metaspace")) {
    if (space->contains("prepend_scheme")) return text_member(*space, "prepend_scheme") != "never";
    return flag_member(*space, "add_prefix_space", true);
  }
  if (find_part(part_of(tokenizer, "normalizer"), "Prepend")) return true;
  return std::nullopt;
}

std::optional<bool> bert_flag(const json& tokenizer, const char* name) {
  const json* bert = find_part(part_of(tokenizer, "normalizer"), "BertNormalizer");
  if (!bert || !bert->contains(name) || !(*bert)[name].is_boolean()) return std::nullopt;
  return (*bert)[name].get<bool>();
}

/// Returns whether the class uses tokenizer.json unchanged and ignores settings from which other classes build a
/// tokenizer.
bool is_generic(const json& config) {
  const auto found = config.find("tokenizer_class");
  return found != config.end() && (*found == "TokenizersBackend" || *found == "PreTrainedTokenizerFast");
}

void check_flag(const json& config, const char* key, std::optional<bool> decided, const char* where) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null() || !decided || is_generic(config)) return;
  if (!found->is_boolean()) reject(key, *found, "it is true or false");
  if (found->get<bool>() != *decided)
    reject(key, *found, fmt::format("tokenizer.json has {} as '{}'", *decided ? "true" : "false", where));
}

void check_settings(const json& config, const json& tokenizer) {
  check_flag(config, "add_prefix_space", prefix_space(tokenizer), "add_prefix_space");
  check_flag(config, "do_lower_case", bert_flag(tokenizer, "lowercase"), "lowercase");
  check_flag(config, "strip_accents", bert_flag(tokenizer, "strip_accents"), "strip_accents");
  check_flag(config, "tokenize_chinese_chars", bert_flag(tokenizer, "handle_chinese_chars"), "handle_chinese_chars");
  for (const TokenizerKey& rule : tokenizer_keys()) {
    if (rule.use != TokenizerKeyUse::refused) continue;
    const auto found = config.find(rule.key);
    if (found != config.end() && !found->is_null() && *found != false) reject(rule.key, *found, rule.reason);
  }
}

bool read_flag(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return false;
  if (!found->is_boolean()) reject(key, *found, "it is true or false");
  return found->get<bool>();
}

/// Tokens to add to tokenizer.json.
class AddedList {
 public:
  explicit AddedList(json& tokenizer) : list_(tokenizer["added_tokens"]) {
    if (list_.is_null()) list_ = json::array();
    if (!list_.is_array()) return;  // reported when the list is read
    for (const json& token : list_)
      if (token.is_object() && token.contains("content") && token["content"].is_string())
        known_.insert(token["content"].get<std::string>());
  }

  /// Adds a text, or an object such as {"content": "<s>", "lstrip": false, ...}. `is_special` overrides the object's
  /// field.
  void add(const json& token, const std::string& key, bool is_special) {
    if (token.is_null() || !list_.is_array()) return;
    const json& content = token.is_object() && token.contains("content") ? token["content"] : token;
    if (!content.is_string()) reject(key, token, "it is a token's text, or an object with its 'content'");
    if (content.get_ref<const std::string&>().empty() || !known_.insert(content.get<std::string>()).second) return;
    const bool special = is_special || flag_member(token, "special", false);
    list_.push_back({{"id", 0u},
                     {"content", content},
                     {"single_word", flag_member(token, "single_word", false)},
                     {"lstrip", flag_member(token, "lstrip", false)},
                     {"rstrip", flag_member(token, "rstrip", false)},
                     {"normalized", flag_member(token, "normalized", !special)},
                     {"special", special}});
  }

 private:
  json& list_;
  std::set<std::string> known_;
};

/// Adds tokens in the order of their ids, which are the keys.
void add_decoded(const json& tokens, AddedList& added) {
  if (!tokens.is_object()) reject("added_tokens_decoder", tokens, "it is an object of tokens by their ids");
  std::map<std::uint64_t, const json*> sorted;
  for (const auto& [id, token] : tokens.items()) {
    if (id.empty() || id.size() > 9 ||
        !std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; }))
      reject("added_tokens_decoder", id, "its keys are ids");
    sorted[std::stoul(id)] = &token;
  }
  for (const auto& [id, token] : sorted) added.add(*token, "added_tokens_decoder", false);
}

bool is_special_name(std::string_view key) {
  return std::find(std::begin(special_names), std::end(special_names), key) != std::end(special_names);
}

void add_specials(const json& config, AddedList& added) {
  if (config.contains("added_tokens_decoder")) add_decoded(config["added_tokens_decoder"], added);
  for (const char* name : special_names)
    if (config.contains(name)) added.add(config[name], name, true);
  for (const auto& [key, value] : config.items())
    if (key.ends_with("_token") && !key.starts_with("add_") && !is_special_name(key) &&
        (value.is_string() || value.is_object()))
      added.add(value, key, true);
  const bool has_extra = config.contains("extra_special_tokens") && !config["extra_special_tokens"].empty();
  for (const char* group :
       {has_extra ? "extra_special_tokens" : "additional_special_tokens", "model_specific_special_tokens"}) {
    if (!config.contains(group) || config[group].is_null()) continue;
    if (!config[group].is_structured()) reject(group, config[group], "it is a list or an object of tokens");
    for (const json& token : config[group]) added.add(token, group, true);
  }
}

Side side_of(const json& config) {
  constexpr const char* key = "truncation_side";
  const auto found = config.find(key);
  if (found == config.end() || found->is_null() || *found == "right") return Side::right;
  if (*found == "left") return Side::left;
  reject(key, *found, "it is \"left\" or \"right\"");
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory, json& tokenizer) {
  if (!tokenizer.is_object()) return {};
  json config = read_object(directory / "tokenizer_config.json");
  check_settings(config, tokenizer);
  if (!config.contains("added_tokens_decoder")) config.update(read_object(directory / "special_tokens_map.json"));
  AddedList added(tokenizer);
  add_specials(config, added);
  const bool is_bpe = text_member(part_of(tokenizer, "model"), "type") == "BPE";
  const bool cleans_bpe =
      read_flag(config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output");
  return {.cleans_up = read_flag(config, "clean_up_tokenization_spaces") && (!is_bpe || cleans_bpe),
          .truncation_side = side_of(config)};
}

}  // namespace lathe::text
