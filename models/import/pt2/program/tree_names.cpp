#include "models/import/pt2/program/tree_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/files/strict_json.h"

namespace lathe::pt2 {

namespace {

using nlohmann::json;

bool is_list_of_texts(const json& list, std::size_t count) {
  return list.is_array() && list.size() == count &&
         std::ranges::all_of(list, [](const json& each) { return each.is_string(); });
}

/// Returns the keys of the children of a node; nothing if they have numbers. The context is JSON in a text: a list of
/// keys, or of the names of a data class's fields and those that are None.
std::vector<std::string> keys_of(const json& node, std::size_t count) {
  if (!node.contains("context") || !node["context"].is_string()) return {};
  const json context = json::parse(node["context"].get<std::string>(), nullptr, false);
  if (count > 0 && is_list_of_texts(context, count)) return context.get<std::vector<std::string>>();
  if (context.is_array() && !context.empty() && count > 0 && is_list_of_texts(context[0], count))
    return context[0].get<std::vector<std::string>>();
  return {};
}

void add_names(const json& node, const std::string& path, std::vector<std::string>& names) {
  if (!node.is_object() || !node.contains("type") || node["type"].is_null()) return names.push_back(path);
  if (!node.contains("children_spec") || !node["children_spec"].is_array()) return;
  const json& children = node["children_spec"];
  const std::vector<std::string> keys = keys_of(node, children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string part = keys.empty() ? fmt::format("{}{}", path.empty() ? "output_" : "", i) : keys[i];
    const bool is_only = keys.empty() && path.empty() && children.size() == 1;
    add_names(children[i], is_only ? "" : path.empty() ? part : fmt::format("{}.{}", path, part), names);
  }
}

/// Replaces empty names, and numbers those that occur again.
std::vector<std::string> distinct(std::vector<std::string> names) {
  std::set<std::string> taken;
  for (std::string& name : names) {
    if (name.empty()) name = "output";
    const std::string base = name;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  }
  return names;
}

}  // namespace

std::vector<std::string> tree_names(std::string_view treespec, std::size_t count) {
  std::vector<std::string> names;
  constexpr int max_depth = 64;
  if (!treespec.empty()) {
    const json parsed = parse_strict_json(treespec, "the treespec of the outputs", max_depth);
    if (parsed.is_array() && parsed.size() == 2) add_names(parsed[1], "", names);
  }
  if (names.size() == count) return distinct(std::move(names));
  names.clear();
  for (std::size_t i = 0; i < count; ++i) names.push_back(count == 1 ? "output" : fmt::format("output_{}", i));
  return names;
}

}  // namespace lathe::pt2
