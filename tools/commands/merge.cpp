#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "runtime/cache/disk_cache.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/pretrained/model_directory.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct MergeOptions {
  std::filesystem::path folder, adapter, output;
};

void merge(const MergeOptions& options) {
  check_output(options.output, options.folder);
  pretrained::AdaptedModel loaded = pretrained::load_adapted(options.folder, options.adapter);
  if (!loaded.lora)
    throw UserError(fmt::format("{} is a model without an adapter", options.folder.string()), "adapter_base",
                    "give the adapter's directory, or --adapter");
  for (const std::filesystem::path& input : {loaded.model.folder, options.adapter})
    check_output(options.output, input);
  DiskCache cache(cache_folder());
  const std::size_t layers = loaded.lora->layers.size();
  pretrained::merge_lora(*loaded.lora, loaded.model, {.cache = cache.enabled() ? &cache : nullptr});
  save_as_stored(loaded.model, options.output);
  copy_text_files(loaded.model.folder, options.output);
  if (loaded.text_folder != loaded.model.folder) copy_text_files(loaded.text_folder, options.output);
  print("{} layers merged; model in {}\n", layers, visible(options.output.string()));
}

}  // namespace

void add_merge(CLI::App& app) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "Write a model with the adapter on it as a directory of its own");
  command->add_option("DIR", options->folder, "An adapter's directory, or a model's with --adapter")
      ->required()
      ->check(CLI::ExistingDirectory);
  add_adapter_option(*command, options->adapter);
  command->add_option("-o,--output", options->output, "Folder for the merged model")->required();
  command->footer(
      "Weights are added up in f32 and written in the dtype that the model's files have.\n"
      "Examples:\n"
      "  lathe merge adapter -o merged\n"
      "  lathe merge Qwen3-0.6B --adapter adapter -o merged");
  command->callback([options] { merge(*options); });
}

}  // namespace lathe::tools
