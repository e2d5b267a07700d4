#include "models/import/pt2/program/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"

namespace lathe::pt2 {

void JsonFields::fail(std::string_view text) const {
  throw UserError(fmt::format("{} {}", place_, text), "import_file", "the file is damaged, or of another format");
}

void JsonFields::wrong_kind(std::string_view wanted) const {
  fail(fmt::format("is of the kind {}, not {}", json_.type_name(), wanted));
}

void JsonFields::require_known(std::initializer_list<std::string_view> keys) const {
  if (!json_.is_object()) wrong_kind("object");
  for (const auto& [key, value] : json_.items())
    if (std::ranges::find(keys, key) == keys.end()) fail(fmt::format("has the unknown field {}", quote(key)));
}

bool JsonFields::has(std::string_view key) const {
  if (!json_.is_object()) wrong_kind("object");
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

JsonFields JsonFields::at(std::string_view key) const {
  if (!json_.is_object()) wrong_kind("object");
  const auto found = json_.find(key);
  if (found == json_.end()) fail(fmt::format("has no field {}", quote(key)));
  return {*found, fmt::format("{}.{}", place_, key)};
}

std::vector<std::pair<std::string, JsonFields>> JsonFields::members() const {
  if (!json_.is_object()) wrong_kind("object");
  std::vector<std::pair<std::string, JsonFields>> all;
  for (const auto& [key, value] : json_.items()) all.emplace_back(key, at(key));
  return all;
}

std::vector<JsonFields> JsonFields::elements() const {
  if (!json_.is_array()) wrong_kind("array");
  std::vector<JsonFields> all;
  for (std::size_t i = 0; i < json_.size(); ++i) all.emplace_back(json_[i], fmt::format("{}[{}]", place_, i));
  return all;
}

std::pair<std::string, JsonFields> JsonFields::kind() const {
  if (!json_.is_object() || json_.size() != 1) fail("is not an object with one field");
  return members()[0];
}

std::string JsonFields::text() const {
  if (!json_.is_string()) wrong_kind("string");
  return json_.get<std::string>();
}

std::int64_t JsonFields::integer() const {
  if (!json_.is_number_integer()) wrong_kind("integer");
  if (json_.is_number_unsigned() &&
      json_.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail("is an integer of more than 63 bits");
  return json_.get<std::int64_t>();
}

double JsonFields::real() const {
  if (json_.is_number()) return json_.get<double>();
  if (json_ == "Infinity") return std::numeric_limits<double>::infinity();
  if (json_ == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (json_ == "NaN") return std::numeric_limits<double>::quiet_NaN();
  wrong_kind("number");
}

bool JsonFields::boolean() const {
  if (!json_.is_boolean()) wrong_kind("boolean");
  return json_.get<bool>();
}

}  // namespace lathe::pt2
