#include "models/text/tokenizer/pipeline/fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/support/nearest.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

namespace lathe::text {

using nlohmann::json;

JsonNode::JsonNode(const json& value, const JsonNode& parent, const std::string& step)
    : value_(&value), path_(parent.path_), is_file_(false) {
  if (parent.is_file_) {
    path_ += ": " + step;
  } else {
    path_ += (step.starts_with('[') ? "" : ".") + step;
  }
}

bool JsonNode::is_null() const { return value_->is_null(); }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_string() const { return value_->is_string(); }

void JsonNode::fail(std::string_view message, std::string_view label, std::string_view hint) const {
  throw UserError(fmt::format("{}: {}", path_, message), label, hint);
}

const std::string& JsonNode::string() const {
  if (!is_string()) fail(fmt::format("is {}, not a string", value_->type_name()));
  return value_->get_ref<const std::string&>();
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) fail(fmt::format("is {}, not true or false", value_->type_name()));
  return value_->get<bool>();
}

double JsonNode::number() const {
  if (!value_->is_number()) fail(fmt::format("is {}, not a number", value_->type_name()));
  return value_->get<double>();
}

std::int64_t JsonNode::count(std::int64_t most) const {
  if (!value_->is_number_integer()) fail(fmt::format("is {}, not a whole number", value_->type_name()));
  const bool fits = value_->is_number_unsigned() && value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  if (!fits) fail(fmt::format("is {}, not between 0 and {}", value_->dump(), most));
  return value_->get<std::int64_t>();
}

char32_t JsonNode::character() const {
  const std::string& text = string();
  if (text.empty() || character_size(text[0]) != text.size())
    fail(fmt::format("is {}, not one character", quote(text)));
  return character_at(text, 0).code;
}

std::size_t JsonNode::choice(std::span<const std::string_view> names) const {
  const std::string& name = string();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    fail(fmt::format("there is no {}", quote(name)), "tokenizer_field", did_you_mean(name, names));
  return static_cast<std::size_t>(found - names.begin());
}

std::vector<JsonNode> JsonNode::items() const {
  if (!is_array()) fail(fmt::format("is {}, not a list", value_->type_name()));
  std::vector<JsonNode> all;
  for (std::size_t i = 0; i < value_->size(); ++i) all.push_back(item(i));
  return all;
}

JsonNode JsonNode::item(std::size_t index) const { return {(*value_)[index], *this, fmt::format("[{}]", index)}; }

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  if (!is_object()) fail(fmt::format("is {}, not an object", value_->type_name()));
  std::vector<std::pair<std::string, JsonNode>> all;
  for (const auto& [name, value] : value_->items()) all.emplace_back(name, JsonNode(value, *this, name));
  return all;
}

Fields::Fields(const JsonNode& place, std::initializer_list<std::string_view> known) : place_(place) {
  if (!place.is_object()) place.fail(fmt::format("is {}, not an object", place.value().type_name()));
  for (const auto& [name, value] : place.value().items())
    if (name != "type" && std::find(known.begin(), known.end(), name) == known.end())
      place.fail(fmt::format("unknown field {}", quote(name)), "tokenizer_field",
                 did_you_mean(name, {known.begin(), known.size()}));
}

bool Fields::has(std::string_view name) const { return place_.value().contains(name); }

JsonNode Fields::get(std::string_view name) const {
  const auto found = place_.value().find(name);
  if (found == place_.value().end()) place_.fail(fmt::format("{} is missing", quote(name)));
  return {*found, place_, std::string(name)};
}

std::optional<JsonNode> Fields::find(std::string_view name) const {
  const auto found = place_.value().find(name);
  if (found == place_.value().end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, place_, std::string(name));
}

bool Fields::boolean_or(std::string_view name, bool otherwise) const {
  const auto found = find(name);
  return found ? found->boolean() : otherwise;
}

std::string Fields::string_or(std::string_view name, std::string_view otherwise) const {
  const auto found = find(name);
  return found ? found->string() : std::string(otherwise);
}

std::size_t read_kind(const JsonNode& place, std::span<const std::string_view> names) {
  if (!place.is_object()) place.fail(fmt::format("is {}, not an object", place.value().type_name()));
  const auto found = place.value().find("type");
  if (found == place.value().end() || !found->is_string()) place.fail("'type' is missing");
  const auto& name = found->get_ref<const std::string&>();
  const auto known = std::find(names.begin(), names.end(), name);
  if (known == names.end())
    place.fail(fmt::format("the type {} is not known", quote(name)), "tokenizer_kind", did_you_mean(name, names));
  return static_cast<std::size_t>(known - names.begin());
}

}  // namespace lathe::text
