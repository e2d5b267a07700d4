#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/goldens/golden.h"

namespace lathe::golden {

namespace {

using nlohmann::json;

const json* find(const Files& files, const std::string& path) {
  const auto* at = static_cast<const json*>(files.config.get());
  for (std::size_t start = 0; at && start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    const auto entry = at->find(path.substr(start, dot - start));
    at = entry == at->end() ? nullptr : &*entry;
    start = dot + 1;
  }
  return at;
}

}  // namespace

std::optional<double> Files::number(const std::string& path) const {
  const json* found = find(*this, path);
  return found && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::string> Files::text(const std::string& path) const {
  const json* found = find(*this, path);
  return found && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

Files load(const std::filesystem::path& folder, const std::string& name) {
  Files files{.name = name, .tensors = {}, .config = nullptr};
  const SafetensorsFile file = SafetensorsFile::open(folder / (name + ".safetensors"));
  for (const std::string& tensor : file.names()) files.tensors.emplace(tensor, file.tensor(tensor));
  std::ifstream in(folder / "manifest.json");
  const json manifest = json::parse(in, nullptr, false);
  const auto entry = manifest.is_object() ? manifest.find(name) : manifest.end();
  if (!manifest.is_object() || entry == manifest.end() || !entry->is_object() || !entry->contains("config"))
    throw UserError(fmt::format("{} has no entry for {}", (folder / "manifest.json").string(), name),
                    "golden_manifest", "give a folder that tests/goldens/make_goldens.py wrote");
  files.config = std::make_shared<const json>(entry->at("config"));
  return files;
}

}  // namespace lathe::golden
