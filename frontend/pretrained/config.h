#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::pretrained {

/// Bytes of the largest file of settings that is read: nobody writes more.
inline constexpr std::uint64_t largest_config = std::uint64_t{16} << 20;

/// A configuration as a config.json holds it: an object of numbers, texts, lists and objects. A key whose value is
/// null counts as absent. UserErrors name the file and the key: [json], [config_missing], [config_type].
class Config {
 public:
  /// `file` is for messages. The text must be a JSON object.
  static Config parse(std::string_view json, std::string_view file);

  bool has(std::string_view key) const;
  /// Whether the object has the key, also with the value null.
  bool contains(std::string_view key) const;
  /// All keys, sorted, but those whose values are null.
  std::vector<std::string> keys() const;
  /// Whether the value says anything: it is there, and is neither null nor false, nor an empty text, list or object.
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
  /// The whole object as JSON text, in the order of its keys' names.
  std::string json() const;

  /// A copy in which `key` has the value of a JSON text.
  Config with(std::string_view key, std::string_view value) const;
  /// A copy without `key`.
  Config without(std::string_view key) const;

  /// The file, and where in it this object is: "config.json: rope_parameters".
  const std::string& name() const { return name_; }
  /// Throws UserError [config_value]: "config.json: hidden_act is 'mish'; ...".
  [[noreturn]] void reject(std::string_view key, std::string_view why) const;

 private:
  struct Json;
  Config(std::shared_ptr<const Json> json, std::string name) : json_(std::move(json)), name_(std::move(name)) {}

  std::shared_ptr<const Json> json_;
  std::string name_;
};

/// The text of a JSON object with `key` set to the value of a JSON text. The other keys keep their order.
std::string with_json_key(std::string_view object, std::string_view key, std::string_view value);

}  // namespace lathe::pretrained
