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

/// A value of tokenizer.json and where it stands there, for messages: "tokenizer.json: model.merges[3]".
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string file) : value_(&value), path_(std::move(file)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;

  /// The value as what it has to be. UserError [tokenizer_field] otherwise.
  const std::string& string() const;
  bool boolean() const;
  double number() const;
  /// From 0 to `most`.
  std::int64_t count(std::int64_t most = INT32_MAX) const;
  /// A string of one character.
  char32_t character() const;
  /// One of `names`, as its index.
  std::size_t choice(std::span<const std::string_view> names) const;
  std::vector<JsonNode> items() const;
  JsonNode item(std::size_t index) const;
  /// The fields of an object whose names are not known.
  std::vector<std::pair<std::string, JsonNode>> members() const;

  [[noreturn]] void fail(std::string_view message, std::string_view label = "tokenizer_field",
                         std::string_view hint = {}) const;

 private:
  friend class Fields;
  JsonNode(const nlohmann::json& value, const JsonNode& parent, const std::string& step);

  const nlohmann::json* value_;
  std::string path_;
  bool is_file_ = true;  ///< the path is that of the file alone
};

/// The fields of an object, each of which has to be known.
class Fields {
 public:
  /// UserError [tokenizer_field] where `place` is no object, or has a field that is not among `known` or "type".
  Fields(const JsonNode& place, std::initializer_list<std::string_view> known);

  const JsonNode& place() const { return place_; }
  bool has(std::string_view name) const;
  /// UserError [tokenizer_field] where it is missing.
  JsonNode get(std::string_view name) const;
  /// Nothing where it is missing or null.
  std::optional<JsonNode> find(std::string_view name) const;

  bool boolean_or(std::string_view name, bool otherwise) const;
  std::string string_or(std::string_view name, std::string_view otherwise) const;

 private:
  JsonNode place_;
};

/// The "type" of a part of the tokenizer, as its index in `names`. UserError [tokenizer_kind] for one that is
/// unknown.
std::size_t read_kind(const JsonNode& place, std::span<const std::string_view> names);

/// Runs `make`; a UserError says which place it comes from.
template <class Make>
auto at_place(const JsonNode& place, const Make& make) {
  try {
    return make();
  } catch (const UserError& error) {
    throw error.with_note("in " + place.path());
  }
}

}  // namespace lathe::text
