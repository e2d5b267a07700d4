#include "frontend/pretrained/lora/adapted_model.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::pretrained {

namespace fs = std::filesystem;

namespace {

fs::path base_of(const fs::path& adapter) {
  const std::string named = read_lora_config(adapter).base_model;
  for (const fs::path& path : {fs::path(named), adapter / named})
    if (!named.empty() && fs::is_directory(path)) return path;
  throw UserError(fmt::format("the model of the adapter in {}, {}, is no directory here", adapter.string(),
                              named.empty() ? "which it does not name" : named),
                  "adapter_base", "correct base_model_name_or_path in its adapter_config.json, or name the model");
}

}  // namespace

std::filesystem::path AdaptedFolders::text_folder() const {
  return !adapter.empty() && fs::exists(adapter / "tokenizer.json") ? adapter : model;
}

AdaptedFolders find_adapted(const fs::path& folder, const fs::path& adapter) {
  const bool is_adapter =
      adapter.empty() && !fs::exists(folder / "config.json") && fs::exists(folder / "adapter_config.json");
  return is_adapter ? AdaptedFolders{base_of(folder), folder} : AdaptedFolders{folder, adapter};
}

AdaptedModel load_adapted(const fs::path& folder, const fs::path& adapter, const LoadOptions& options) {
  return load_adapted(find_adapted(folder, adapter), [&](const fs::path& base) { return load(base, options); });
}

}  // namespace lathe::pretrained
