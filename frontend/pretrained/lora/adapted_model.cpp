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

AdaptedModel load_adapted(const fs::path& folder, const fs::path& adapter, const LoadOptions& options) {
  const bool is_adapter =
      adapter.empty() && !fs::exists(folder / "config.json") && fs::exists(folder / "adapter_config.json");
  if (is_adapter) return load_adapted(base_of(folder), folder, options);
  AdaptedModel loaded{.model = load(folder, options), .text_folder = folder};
  if (adapter.empty()) return loaded;
  loaded.lora = load_lora(loaded.model, adapter);
  if (fs::exists(adapter / "tokenizer.json")) loaded.text_folder = adapter;
  return loaded;
}

}  // namespace lathe::pretrained
