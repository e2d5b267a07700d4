#include "models/pretrained/config/key_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe::pretrained {

KeyRule used(std::string_view key, std::string_view fallback) {
  return {.key = key, .use = KeyUse::used, .fallback = fallback};
}

KeyRule harmless(std::string_view key, std::string_view reason) {
  return {.key = key, .use = KeyUse::harmless, .reason = reason};
}

KeyRule refused(std::string_view key, std::string_view accepted, std::string_view reason) {
  return {.key = key, .use = KeyUse::refused, .reason = reason, .accepted = accepted};
}

KeyRule alias(std::string_view key, std::string_view target) {
  return {.key = key, .use = KeyUse::alias, .target = target};
}

KeyTable::KeyTable(std::initializer_list<std::vector<KeyRule>> parts) {
  for (const std::vector<KeyRule>& part : parts)
    for (const KeyRule& rule : part) {
      const auto same = [&](const KeyRule& other) { return other.key == rule.key; };
      const auto before = std::find_if(rules_.begin(), rules_.end(), same);
      if (before == rules_.end())
        rules_.push_back(rule);
      else
        *before = rule;
    }
}

const KeyRule* KeyTable::find(std::string_view key) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const KeyRule& rule) { return rule.key == key; });
  return found == rules_.end() ? nullptr : &*found;
}

std::vector<std::string> check_keys(const Config& config, const KeyTable& table) {
  std::vector<std::string> unknown;
  for (const std::string& key : config.keys()) {
    const KeyRule* rule = table.find(key);
    if (!rule)
      unknown.push_back(key);
    else if (rule->use == KeyUse::refused && !(!rule->accepted.empty() && config.is_one_of(key, rule->accepted)))
      config.reject(key, rule->reason);
    else if (rule->use == KeyUse::alias && config.has(rule->target) && config.json(key) != config.json(rule->target))
      config.reject(key,
                    fmt::format("it is another name of {}, which is {}", rule->target, config.json(rule->target)));
  }
  return unknown;
}

Config read_keys(const Config& config, const KeyTable& table) {
  Config read = config;
  for (const std::string& key : config.keys()) {
    const KeyRule* rule = table.find(key);
    if (rule && rule->use == KeyUse::alias) read = read.with(rule->target, config.json(key));
    if (!rule || rule->use == KeyUse::harmless || rule->use == KeyUse::alias) read = read.without(key);
  }
  for (const KeyRule& rule : table.rules())
    if (!rule.fallback.empty() && !read.contains(rule.key)) read = read.with(rule.key, rule.fallback);
  return read;
}

Config known_keys(const Config& config, const KeyTable& table) {
  for (const std::string& key : check_keys(config, table))
    if (config.is_set(key))
      config.reject(key, "Lathe does not know this option, which may change the result: remove it if it does not");
  return read_keys(config, table);
}

std::string ignored_keys_note(const Config& config, const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  return fmt::format("{}: ignored keys that the original library does not read: {}", config.name(),
                     fmt::join(keys, ", "));
}

}  // namespace lathe::pretrained
