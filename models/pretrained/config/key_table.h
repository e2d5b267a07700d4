#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/pretrained/config/config.h"

/// Rules for each key of a settings file written by another library.
namespace lathe::pretrained {

enum class KeyUse : std::uint8_t {
  used,      ///< Lathe reads the value, and it changes the result or is checked
  harmless,  ///< does not change the result; the rule gives the reason
  refused,   ///< UserError [config_value] with the rule's reason, unless the value is null or in `accepted`
  alias,     ///< another name for the key `target`
};

struct KeyRule {
  std::string_view key;
  KeyUse use = KeyUse::used;
  std::string_view reason = {};    ///< of harmless and refused keys
  std::string_view accepted = {};  ///< refused: a JSON list of values without effect, such as "[false, 0]"
  std::string_view target = {};    ///< alias: the primary name
  /// used: the library's default as JSON text; empty if an absent key and null mean the same.
  std::string_view fallback = {};
};

// Shorthands for tables.
KeyRule used(std::string_view key, std::string_view fallback = {});
KeyRule harmless(std::string_view key, std::string_view reason);
KeyRule refused(std::string_view key, std::string_view accepted, std::string_view reason);
KeyRule alias(std::string_view key, std::string_view target);

/// One rule per key that the original library knows for a file, in the library's order. Keys that the library does
/// not know have no rule: check_keys() returns them, and read_keys() drops them.
class KeyTable {
 public:
  /// A later rule for the same key replaces an earlier one.
  explicit KeyTable(std::initializer_list<std::vector<KeyRule>> parts);

  const std::vector<KeyRule>& rules() const { return rules_; }
  const KeyRule* find(std::string_view key) const;

 private:
  std::vector<KeyRule> rules_;
};

/// Returns the keys without a rule, sorted. Throws UserError [config_value] for a refused key, or for two names of
/// one key with different values.
std::vector<std::string> check_keys(const Config& config, const KeyTable& table);

/// Returns only the used and refused keys under their primary names, with the library's defaults for missing ones.
/// Harmless and unknown keys are dropped, so no reader can depend on them.
Config read_keys(const Config& config, const KeyTable& table);

/// read_keys() for a file in which every key matters. Throws UserErrors of check_keys(), and [config_value] for a key
/// that is set (Config::is_set) but has no rule.
Config known_keys(const Config& config, const KeyTable& table);

/// Returns "config.json: the library does not read 'a' and 'b', and Lathe ignores them"; empty for no keys.
std::string ignored_keys_note(const Config& config, const std::vector<std::string>& keys);

}  // namespace lathe::pretrained
