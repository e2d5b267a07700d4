#include "models/pretrained/lora/adapted_model.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "ir/support/syntax/quoted.h"
#include "models/pretrained/folder_kind.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/tensor_folder.h"

namespace lathe::pretrained {

namespace fs = std::filesystem;

namespace {

fs::path base_of(const fs::path& adapter) {
  const std::string named = read_lora_config(adapter).base_model;
  if (named.empty())
    throw UserError(fmt::format("the adapter in {} does not name its model", quote_path(adapter)), "adapter_base",
                    "write base_model_name_or_path in its adapter_config.json, or name the model");
  std::error_code reason, below;
  if (fs::is_directory(named, reason)) return named;
  if (fs::is_directory(adapter / named, below)) return adapter / named;
  throw UserError(fmt::format("the model of the adapter in {}, {}, is not a directory here{}", quote_path(adapter),
                              quote(named), reason ? ": " + reason.message() : ""),
                  "adapter_base", "correct base_model_name_or_path in its adapter_config.json, or name the model");
}

/// Whether the folder has a model's files next to adapter_config.json. An adapter may come with a config.json only.
bool has_model(const fs::path& folder) {
  return path_exists(folder / "config.json") && !tensor_files_in(folder).empty();
}

}  // namespace

std::filesystem::path AdaptedFolders::text_folder() const {
  return !adapter.empty() && path_exists(adapter / "tokenizer.json") ? adapter : model;
}

AdaptedFolders find_adapted(const fs::path& folder, const fs::path& adapter) {
  require_model_folder(folder);
  if (!adapter.empty()) return {folder, adapter};
  if (!path_exists(folder / "adapter_config.json")) {
    if (!path_exists(folder / "config.json")) no_config(folder);
    return {folder, {}};
  }
  if (has_model(folder))
    throw UserError(fmt::format("{} holds a model and an adapter", quote_path(folder)), "model_folder",
                    "remove the files of one of them, or name the adapter's directory too (--adapter)");
  return {base_of(folder), folder};
}

}  // namespace lathe::pretrained
