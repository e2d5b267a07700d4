#include "runtime/text/template/library/namespace.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/text/template/values/repr.h"

namespace lathe::jinja {

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_'))
    fail_unsafe(
        fmt::format("Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. "
                    "Please rename the attribute.",
                    string_repr(name)));
  const auto at =
      std::find_if(attributes_.begin(), attributes_.end(), [&](const auto& had) { return had.first == name; });
  if (at == attributes_.end())
    attributes_.emplace_back(name, std::move(value));
  else
    at->second = std::move(value);
}

Value Namespace::attribute(Runtime&, std::string_view name) {
  for (const auto& [key, value] : attributes_)
    if (key == name) return value;
  return Value::missing();
}

std::string Namespace::repr(Runtime& runtime, int depth) {
  std::string text = "<Namespace {";
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    const auto& [name, value] = attributes_[i];
    text += fmt::format("{}{}: {}", i ? ", " : "", string_repr(name), jinja::repr(runtime, value, depth + 1));
  }
  return text + "}>";
}

}  // namespace lathe::jinja
