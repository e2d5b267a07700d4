#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/error.h"

namespace lathe::text {

/// A value of tokenizer.json and its path for messages: "tokenizer.json: model.merges[3]".
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string file) : value_(&value), path_(std::move(file)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;

  /// Return the value as the requested type. They throw UserError [tokenizer_field] for other types.
  const std::string& string() const;
  bool boolean() const;
  double number() const;
  /// Returns an integer from 0 to `most`.
  std::int64_t count(std::int64_t most = INT32_MAX) const;
  /// Returns the only character of a string.
  char32_t character() const;
  /// Returns the index of the value in `names`.
  std::size_t choice(std::span<const std::string_view> names) const;
  std::vector<JsonNode> items() const;
  JsonNode item(std::size_t index) const;
  /// Returns all fields of an object.
  std::vector<std::pair<std::string, JsonNode>> members() const;

  [[noreturn]] void fail(std::string_view message, std::string_view label = "tokenizer_field",
                         std::string_view hint = {}) const;

 private:
  friend class Fields;
  JsonNode(const nlohmann::json& value, const JsonNode& parent, const std::string& step);

  const nlohmann::json* value_;
  std::string path_;
  bool is_file_ = true;  ///< the path is only the file name
};

/// The fields of an object, all of which must be known.
class Fields {
 public:
  /// Throws UserError [tokenizer_field] if `place` is not an object or has a field other than `known` and "type".
  Fields(const JsonNode& place, std::initializer_list<std::string_view> known);

  const JsonNode& place() const { return place_; }
  bool has(std::string_view name) const;
  /// Returns a field. Throws UserError [tokenizer_field] if it is missing.
  JsonNode get(std::string_view name) const;
  /// Returns a field; nullopt if it is missing or null.
  std::optional<JsonNode> find(std::string_view name) const;

  bool boolean_or(std::string_view name, bool otherwise) const;
  std::string string_or(std::string_view name, std::string_view otherwise) const;

 private:
  JsonNode place_;
};

/// Returns the index of the object's "type" in `names`. Throws UserError [tokenizer_kind] for an unknown type.
std::size_t read_kind(const JsonNode& place, std::span<const std::string_view> names);

/// Calls `make` and adds the path to UserErrors that it throws.
template <class Make>
auto at_place(const JsonNode& place, const Make& make) {
  try {
    return make();
  } catch (const UserError& error) {
    throw error.with_note("in " + place.path());
  }
}

}  // namespace lathe::text
