#include "models/pretrained/config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "runtime/files/strict_json.h"

namespace lathe::pretrained {

struct Config::Json {
  nlohmann::json value;

  /// Returns null if the key is missing or its value is null.
  const nlohmann::json* find(std::string_view key) const {
    const auto at = value.find(std::string(key));
    return at == value.end() || at->is_null() ? nullptr : &*at;
  }
};

namespace {

[[noreturn]] void wrong_type(const std::string& name, std::string_view key, const nlohmann::json& value,
                             std::string_view wanted) {
  throw UserError(fmt::format("{}: {} is {}, not {}", name, key, value.dump(), wanted), "config_type",
                  "correct the file");
}

const nlohmann::json& required(const nlohmann::json* found, const std::string& name, std::string_view key) {
  if (!found) throw UserError(fmt::format("{}: {} is missing", name, key), "config_missing", "is it the right file?");
  return *found;
}

std::int64_t as_integer(const nlohmann::json& value, const std::string& name, std::string_view key) {
  const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!value.is_number_integer() || !fits) wrong_type(name, key, value, "an integer of 64 bits");
  return value.get<std::int64_t>();
}
double as_real(const nlohmann::json& value, const std::string& name, std::string_view key) {
  if (!value.is_number()) wrong_type(name, key, value, "a number");
  return value.get<double>();
}
std::string as_text(const nlohmann::json& value, const std::string& name, std::string_view key) {
  if (!value.is_string()) wrong_type(name, key, value, "a string");
  return value.get<std::string>();
}

}  // namespace

Config Config::parse(std::string_view json, std::string_view file) {
  auto parsed = std::make_shared<Json>(Json{parse_strict_json(json, file)});
  if (!parsed->value.is_object())
    throw UserError(fmt::format("{} holds no JSON object", file), "json", "is it the right file?");
  return Config(std::move(parsed), std::string(file));
}

bool Config::has(std::string_view key) const { return json_->find(key) != nullptr; }

bool Config::contains(std::string_view key) const { return json_->value.contains(std::string(key)); }

std::vector<std::string> Config::keys() const {
  std::vector<std::string> found;
  for (const auto& [key, value] : json_->value.items())
    if (!value.is_null()) found.push_back(key);
  return found;
}

bool Config::is_set(std::string_view key) const {
  const nlohmann::json* found = json_->find(key);
  if (!found) return false;
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_string()) return !found->get_ref<const std::string&>().empty();
  return found->is_number() || !found->empty();
}

bool Config::is_text(std::string_view key) const {
  const nlohmann::json* found = json_->find(key);
  return found && found->is_string();
}
bool Config::is_list(std::string_view key) const {
  const nlohmann::json* found = json_->find(key);
  return found && found->is_array();
}

std::int64_t Config::integer(std::string_view key) const {
  return as_integer(required(json_->find(key), name_, key), name_, key);
}
std::int64_t Config::integer(std::string_view key, std::int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}
double Config::real(std::string_view key) const {
  return as_real(required(json_->find(key), name_, key), name_, key);
}
double Config::real(std::string_view key, double fallback) const { return has(key) ? real(key) : fallback; }
bool Config::boolean(std::string_view key, bool fallback) const {
  const nlohmann::json* found = json_->find(key);
  if (!found) return fallback;
  if (!found->is_boolean()) wrong_type(name_, key, *found, "true or false");
  return found->get<bool>();
}
std::string Config::text(std::string_view key) const {
  return as_text(required(json_->find(key), name_, key), name_, key);
}
std::string Config::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

namespace {

/// Converts a list item by item.
template <class Item>
auto items(const nlohmann::json& list, const std::string& name, std::string_view key, std::string_view wanted,
           const Item& item) {
  if (!list.is_array()) wrong_type(name, key, list, wanted);
  std::vector<decltype(item(list, name, key))> values;
  for (const nlohmann::json& each : list) values.push_back(item(each, name, key));
  return values;
}

}  // namespace

std::vector<double> Config::reals(std::string_view key) const {
  return items(required(json_->find(key), name_, key), name_, key, "a list of numbers", as_real);
}
std::vector<std::int64_t> Config::integers(std::string_view key) const {
  return items(required(json_->find(key), name_, key), name_, key, "a list of integers", as_integer);
}
std::vector<std::string> Config::texts(std::string_view key) const {
  return items(required(json_->find(key), name_, key), name_, key, "a list of strings", as_text);
}
std::vector<std::vector<std::int64_t>> Config::integer_lists(std::string_view key) const {
  constexpr std::string_view wanted = "a list of lists of integers";
  return items(required(json_->find(key), name_, key), name_, key, wanted,
               [&](const nlohmann::json& list, const std::string& name, std::string_view of) {
                 return items(list, name, of, wanted, as_integer);
               });
}

Config Config::object(std::string_view key) const {
  const nlohmann::json& found = required(json_->find(key), name_, key);
  if (!found.is_object()) wrong_type(name_, key, found, "an object");
  return Config(std::make_shared<Json>(Json{found}), fmt::format("{}: {}", name_, key));
}

std::vector<Config> Config::objects(std::string_view key) const {
  const nlohmann::json& list = required(json_->find(key), name_, key);
  if (!list.is_array()) wrong_type(name_, key, list, "a list of objects");
  std::vector<Config> found;
  for (const nlohmann::json& each : list) {
    if (!each.is_object()) wrong_type(name_, key, each, "an object");
    found.push_back(Config(std::make_shared<Json>(Json{each}), fmt::format("{}: {}[{}]", name_, key, found.size())));
  }
  return found;
}

std::string Config::json(std::string_view key) const {
  const nlohmann::json* found = json_->find(key);
  return found ? found->dump() : "null";
}

std::string Config::json() const { return json_->value.dump(); }

bool Config::is_one_of(std::string_view key, std::string_view list) const {
  const nlohmann::json* found = json_->find(key);
  const nlohmann::json values = nlohmann::json::parse(list);
  return found && std::find(values.begin(), values.end(), *found) != values.end();
}

Config Config::with(std::string_view key, std::string_view value) const {
  auto changed = std::make_shared<Json>(*json_);
  changed->value[std::string(key)] = nlohmann::json::parse(value);
  return Config(std::move(changed), name_);
}

Config Config::without(std::string_view key) const {
  auto changed = std::make_shared<Json>(*json_);
  changed->value.erase(std::string(key));
  return Config(std::move(changed), name_);
}

void Config::reject(std::string_view key, std::string_view why) const {
  const nlohmann::json* found = json_->find(key);
  throw UserError(fmt::format("{}: {} is {}", name_, key, found ? found->dump() : "absent"), "config_value", why);
}

std::string with_json_key(std::string_view object, std::string_view key, std::string_view value) {
  auto parsed = nlohmann::ordered_json::parse(object);
  parsed[std::string(key)] = nlohmann::ordered_json::parse(value);
  return parsed.dump(2) + "\n";
}

}  // namespace lathe::pretrained
