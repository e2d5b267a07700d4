#include "models/pretrained/folder_kind.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/other_format.h"
#include "runtime/files/paths.h"

namespace lathe::pretrained {

namespace fs = std::filesystem;

namespace {

using Folders = std::vector<fs::path>;

[[noreturn]] void fail(const fs::path& folder, const std::string& kind, const std::string& advice) {
  throw UserError(fmt::format("{} has no config.json: {}", quote_path(folder), kind), "model_folder", advice);
}

bool has_config(const fs::path& folder) { return is_folder(folder) && path_exists(folder / "config.json"); }

/// Throws an error that suggests the first candidate that is a model directory.
void suggest(const fs::path& folder, const std::string& kind, const Folders& candidates) {
  const auto found = std::ranges::find_if(candidates, has_config);
  if (found != candidates.end()) fail(folder, kind, fmt::format("give {}", quote_path(*found)));
}

}  // namespace

void no_config(const fs::path& folder) {
  const Folders entries = list_folder(folder);
  const auto has = [&](const char* name) { return path_exists(folder / name); };
  if (entries.empty()) fail(folder, "it is empty", "give the directory of a model");
  if (is_folder(folder / "snapshots"))
    suggest(folder, "it is a folder of the Hugging Face cache, which has the model in a folder below it",
            list_folder(folder / "snapshots"));
  suggest(folder, "the model is in a folder below it", {folder / "model"});
  if (has("model_index.json"))
    fail(folder, "it is a pipeline of the library diffusers", "Lathe reads models of transformers");
  if (has("params.json"))
    fail(folder, "it has params.json, the configuration of a model in its makers' own format",
         "download the model in the format of transformers");
  if (has("adapter_model.safetensors"))
    fail(folder, "it has the weights of an adapter, but no adapter_config.json", "download the whole adapter");
  for (const fs::path& entry : entries)
    if (const auto other = other_format_named(entry.filename().string()))
      fail(folder, fmt::format("it has {}, {}", quote(entry.filename().string()), other->name), other->advice);
  suggest(folder, "the model is in a folder below it", entries);
  fail(folder, "it is not the directory of a model",
       "a directory as transformers' save_pretrained() writes it has config.json and .safetensors files");
}

void no_adapter_weights(const fs::path& folder) {
  const std::string missing = fmt::format("{} has no adapter_model.safetensors", quote_path(folder));
  for (const fs::path& entry : list_folder(folder)) {
    const std::string name = entry.filename().string();
    const auto other = other_format_named(name);
    if (other && name.starts_with("adapter_model"))
      throw UserError(fmt::format("{}; it has {}, {}", missing, quote(name), other->name), "adapter_missing",
                      other->advice);
  }
  throw UserError(missing, "adapter_missing", "only adapters in .safetensors files are read");
}

}  // namespace lathe::pretrained
