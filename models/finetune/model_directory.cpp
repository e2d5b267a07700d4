#include "models/finetune/model_directory.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/generation/generation_options.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/tensor_folder.h"

namespace lathe {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t largest_text_file = std::uint64_t{1} << 28;
constexpr const char* text_files[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "vocab.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja",
                                      "chat_template.json",
                                      "generation_config.json"};

pretrained::Config read_config(const fs::path& path) {
  return pretrained::Config::parse(read_file(path, largest_text_file), path.string());
}

/// Returns the files in a folder that Lathe reads.
FolderSave::Names files_read_in(const fs::path& folder) {
  FolderSave::Names names = pretrained::model_files_in(folder);
  for (std::string& name : text_files_in(folder)) names.push_back(std::move(name));
  return names;
}

}  // namespace

Tokenizer tokenizer_of(const pretrained::AdaptedModel& model) {
  return Tokenizer::load(model.text_folder).for_embeddings(model.model.model->vocabulary_size());
}

std::optional<TokenId> end_token(const pretrained::AdaptedModel& model, const Tokenizer& tokenizer) {
  const fs::path path = model.text_folder / "tokenizer_config.json";
  if (path_exists(path)) {
    const pretrained::Config config = read_config(path);
    if (config.is_text("eos_token")) return tokenizer.id_of(config.text("eos_token"));
    if (config.has("eos_token")) return tokenizer.id_of(config.object("eos_token").text("content"));
  }
  const std::vector<std::int64_t> tokens = load_stop_tokens(model.text_folder, model.model.folder);
  if (tokens.empty()) return std::nullopt;
  return static_cast<TokenId>(tokens.front());
}

void check_output(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (fs::equivalent(output, input, ignored))
    throw UserError(fmt::format("{} is an input directory", output.string()), "output_folder",
                    "give another output folder; input files are read until the end of the run");
}

std::vector<std::string> text_files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const char* name : text_files)
    if (path_exists(folder / name)) names.emplace_back(name);
  const fs::path more = "additional_chat_templates";
  if (!is_folder(folder / more)) return names;
  for (const fs::path& entry : list_folder(folder / more))
    if (is_plain_file(entry)) names.push_back((more / entry.filename()).string());
  return names;
}

TextSources text_sources(const fs::path& model, const fs::path& texts) {
  return texts == model ? TextSources{model} : TextSources{model, texts};
}

void check_save(const fs::path& output, FolderSave::Names files, const TextSources& texts) {
  for (const fs::path& from : texts)
    for (std::string& name : text_files_in(from)) files.push_back(std::move(name));
  if (is_folder(output)) FolderSave::check(output, files_read_in(output), files);
}

void save_folder(const fs::path& output, const TextSources& texts, const std::function<void(FolderSave&)>& add) {
  FolderSave save(output);
  add(save);
  for (const fs::path& from : texts)
    for (const std::string& name : text_files_in(from)) save.write(name, read_file(from / name, largest_text_file));
  save.commit(files_read_in(output));
}

void add_as_stored(FolderSave& save, const pretrained::ModelFiles& model) {
  const TensorFolder files = TensorFolder::open(model.folder);
  pretrained::ModelFiles stored = model;
  stored.weights = Parameters();
  for (const auto& [name, place] : model.places) {
    const HostTensor& value = model.weights.get(name);
    const DType dtype = files.info(place.tensor).dtype;
    // Weights that keep their dtype are borrowed until they are written.
    stored.weights.set(name, value.dtype() == dtype
                                 ? HostTensor::borrow(dtype, value.shape(), const_cast<std::byte*>(value.data()))
                                 : value.cast(dtype));
  }
  pretrained::add_files(save, stored);
}

}  // namespace lathe
