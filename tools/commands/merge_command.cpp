#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "models/finetune/model_directory.h"
#include "models/pretrained/encoders/sentence_encoder.h"
#include "models/pretrained/families.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/files/paths.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/options/adapter_options.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct MergeOptions {
  std::filesystem::path folder, adapter, output;
};

template <class Model>
void merge_into(const pretrained::AdaptedFolders& folders, const std::filesystem::path& output) {
  auto loaded = pretrained::load_adapted<Model>(folders);
  DiskCache cache(cache_folder());
  const std::size_t layers = loaded.lora->layers.size();
  const TextSources texts = text_sources(folders.model, loaded.text_folder);
  check_save(output, files_written(loaded.model), texts);
  pretrained::merge_lora(*loaded.lora, loaded.model, {.cache = cache.enabled() ? &cache : nullptr});
  save_folder(output, texts, [&](FolderSave& save) { add_as_stored(save, loaded.model); });
  print("{} layers merged; model in {}\n", layers, visible(output.string()));
}

void merge(const MergeOptions& options) {
  const pretrained::AdaptedFolders folders = pretrained::find_adapted(options.folder, options.adapter);
  if (folders.adapter.empty())
    throw UserError(fmt::format("{} is a model without an adapter", options.folder.string()), "adapter_base",
                    "give the adapter's directory, or --adapter");
  for (const std::filesystem::path& input : {folders.model, folders.adapter}) check_output(options.output, input);
  using pretrained::ModelKind;
  const auto kind = pretrained::kind_of(pretrained::read_config(folders.model).config);
  if (kind == ModelKind::seq2seq)
    merge_into<pretrained::Seq2SeqLm>(folders, options.output);
  else if (kind == ModelKind::image)
    merge_into<pretrained::ImageModel>(folders, options.output);
  else if (kind == ModelKind::encoder && path_exists(folders.model / "modules.json"))
    merge_into<pretrained::SentenceEncoder>(folders, options.output);
  else if (kind == ModelKind::encoder)
    merge_into<pretrained::Encoder>(folders, options.output);
  else
    merge_into<pretrained::CausalLm>(folders, options.output);
  note_ignored_keys(folders.model);
}

}  // namespace

void add_merge(CLI::App& app) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command =
      app.add_subcommand("merge", "Merge an adapter into its model, and write the result as a new directory");
  command->add_option("DIR", options->folder, "Adapter directory, or model directory with --adapter")->required();
  add_adapter_option(*command, options->adapter);
  command->add_option("-o,--output", options->output, "Output folder for the merged model")->required();
  command->footer(
      "Weights are added in f32, and written in the dtype of the model's files.\n"
      "Examples:\n"
      "  lathe merge adapter -o merged\n"
      "  lathe merge Qwen3-0.6B --adapter adapter -o merged");
  command->callback([options] { merge(*options); });
}

}  // namespace lathe::tools
