#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/pretrained/config.h"

/// What Lathe does with each key of a settings file that another library writes.
namespace lathe::pretrained {

enum class KeyUse : std::uint8_t {
  used,      ///< Lathe reads the value, and it changes the result or is checked
  harmless,  ///< no value changes the result, for the rule's reason
  refused,   ///< UserError [config_value] with the rule's reason, unless the value is null or one of `accepted`
  alias,     ///< another name of the key `target`
};

struct KeyRule {
  std::string_view key;
  KeyUse use = KeyUse::used;
  std::string_view reason = {};    ///< of harmless and refused keys
  std::string_view accepted = {};  ///< refused: a JSON list of values that ask for nothing, such as "[false, 0]"
  std::string_view target = {};    ///< alias: the key's first name
  /// used: the JSON text of the library's value where the file lacks the key; empty where absent and null mean the
  /// same.
  std::string_view fallback = {};
};

// Short forms for tables.
KeyRule used(std::string_view key, std::string_view fallback = {});
KeyRule harmless(std::string_view key, std::string_view reason);
KeyRule refused(std::string_view key, std::string_view accepted, std::string_view reason);
KeyRule alias(std::string_view key, std::string_view target);

/// One rule per key that the original library knows for a file, in the order of the library. Keys that the library
/// does not know have no rule: check_keys() returns them, and read_keys() drops them.
class KeyTable {
 public:
  /// A later rule of the same key replaces an earlier one.
  explicit KeyTable(std::initializer_list<std::vector<KeyRule>> parts);

  const std::vector<KeyRule>& rules() const { return rules_; }
  const KeyRule* find(std::string_view key) const;

 private:
  std::vector<KeyRule> rules_;
};

/// Throws UserError [config_value] for a refused key, or for two names of one key with different values. Returns the
/// keys without a rule, sorted.
std::vector<std::string> check_keys(const Config& config, const KeyTable& table);

/// The used and refused keys alone, under their first names, with the library's values where the file lacks a key.
/// Harmless and unknown keys are dropped, so that no reader can depend on them.
Config read_keys(const Config& config, const KeyTable& table);

/// read_keys() of a file in which every key has a meaning: UserErrors of check_keys(), and [config_value] for a key
/// that is set (Config::is_set) and has no rule.
Config known_keys(const Config& config, const KeyTable& table);

/// "config.json: the library does not read 'a' and 'b', and Lathe ignores them"; empty for no keys.
std::string ignored_keys_note(const Config& config, const std::vector<std::string>& keys);

}  // namespace lathe::pretrained
