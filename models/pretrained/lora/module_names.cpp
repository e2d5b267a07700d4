#include "models/pretrained/lora/module_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "ir/support/error.h"
#include "models/text/tokenizer/unicode/regex.h"
#include "runtime/files/file_io.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view all_linear = "all-linear";

/// Returns the first match in the path of a regular expression. `whole` contains the user's `pattern`, which errors
/// name.
std::optional<text::Regex::Match> first_match(std::string_view pattern, const std::string& whole,
                                              std::string_view path) {
  try {
    text::MatchMemory memory;
    text::Regex::Match match;
    if (text::Regex::native(whole).search(path, 0, memory, match)) return match;
    return std::nullopt;
  } catch (const UserError& error) {
    throw UserError(fmt::format("the pattern {} of modules: {}", quote(pattern), error.what()), "adapter_pattern",
                    "give a regular expression");
  }
}

bool is_end_of(std::string_view name, std::string_view path) {
  if (path == name) return true;
  return path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.';
}

/// Returns 12 for "model.layers.12.mlp": the number after the stack that `patterns` name, or after the last numbered
/// name; -1 if there is none.
std::int64_t layer_of(const std::vector<std::string>& patterns, std::string_view path) {
  const auto number_after = [&](std::string_view name) -> std::int64_t {
    // The match ends before the number; the greedy prefix makes it the rightmost one.
    const auto match = first_match(name, fmt::format(R"(\A.*\.{}\.(?=\d+\.))", name), path);
    if (!match) return -1;
    std::int64_t number = -1;
    std::from_chars(path.data() + match->end, path.data() + path.size(), number);
    return number;
  };
  if (patterns.empty()) return number_after("[^.]*");
  for (const std::string& pattern : patterns)
    if (const std::int64_t number = number_after(pattern); number >= 0) return number;
  return -1;
}

}  // namespace

bool is_among(const ModuleNames& names, std::string_view path) {
  if (const auto* pattern = std::get_if<std::string>(&names))
    return first_match(*pattern, fmt::format(R"(\A(?:{})\z)", *pattern), path).has_value();
  const auto& list = std::get<std::vector<std::string>>(names);
  return std::any_of(list.begin(), list.end(), [&](const std::string& name) { return is_end_of(name, path); });
}

bool ends_in_match(std::string_view pattern, std::string_view path) {
  return first_match(pattern, fmt::format(R"(\A(?:.*\.)?(?:{})\z)", pattern), path).has_value();
}

bool is_target(const LoraConfig& config, std::string_view path, bool is_output) {
  if (is_among(config.excluded, path) || is_saved_whole(config, path)) return false;
  if (const auto* text = std::get_if<std::string>(&config.targets))
    return *text == all_linear ? !is_output : is_among(config.targets, path);
  const auto& list = std::get<std::vector<std::string>>(config.targets);
  if (std::find(list.begin(), list.end(), path) != list.end()) return true;
  if (!is_among(config.targets, path)) return false;
  if (config.layers.empty()) return true;
  return std::find(config.layers.begin(), config.layers.end(), layer_of(config.layers_pattern, path)) !=
         config.layers.end();
}

bool is_saved_whole(const LoraConfig& config, std::string_view path) {
  // A module inside a saved one is saved with it.
  const std::string dotted = fmt::format(".{}.", path);
  return std::any_of(config.modules_to_save.begin(), config.modules_to_save.end(),
                     [&](const std::string& name) { return dotted.find("." + name + ".") != std::string::npos; });
}

}  // namespace lathe::pretrained
