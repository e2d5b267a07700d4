#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::pretrained {

/// Maximum size of a settings file in bytes; real ones are far smaller.
inline constexpr std::uint64_t largest_config = std::uint64_t{16} << 20;

/// A configuration from config.json: an object of numbers, texts, lists and objects. A key whose value is null is
/// treated as absent. UserErrors name the file and the key: [json], [config_missing], [config_type].
class Config {
 public:
  /// `file` is the name in messages. The text must be a JSON object.
  static Config parse(std::string_view json, std::string_view file);

  bool has(std::string_view key) const;
  /// Whether the object has the key, even if the value is null.
  bool contains(std::string_view key) const;
  /// Returns all keys whose values are not null, sorted.
  std::vector<std::string> keys() const;
  /// Whether the value is present and is not null, false, or an empty text, list or object.
  bool is_set(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;

  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  double real(std::string_view key) const;
  double real(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<double> reals(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<std::vector<std::int64_t>> integer_lists(std::string_view key) const;
  Config object(std::string_view key) const;
  std::vector<Config> objects(std::string_view key) const;

  /// The value as JSON text; "null" for an absent key.
  std::string json(std::string_view key) const;
  /// Whether the value equals an item of `list`, the text of a JSON list.
  bool is_one_of(std::string_view key, std::string_view list) const;
  /// Returns the whole object as JSON text with sorted keys.
  std::string json() const;

  /// Returns a copy in which `key` has the value of a JSON text.
  Config with(std::string_view key, std::string_view value) const;
  /// Returns a copy without `key`.
  Config without(std::string_view key) const;

  /// The file and the place of this object in it: "config.json: rope_parameters".
  const std::string& name() const { return name_; }
  /// Throws UserError [config_value]: "config.json: hidden_act is 'mish'; ...".
  [[noreturn]] void reject(std::string_view key, std::string_view why) const;

 private:
  struct Json;
  Config(std::shared_ptr<const Json> json, std::string name) : json_(std::move(json)), name_(std::move(name)) {}

  std::shared_ptr<const Json> json_;
  std::string name_;
};

/// Returns the text of a JSON object with `key` set to the value of a JSON text. Other keys keep their order.
std::string with_json_key(std::string_view object, std::string_view key, std::string_view value);

}  // namespace lathe::pretrained
