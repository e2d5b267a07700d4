#include "tools/pretrained/model_directory.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "frontend/generation/generation_options.h"
#include "ir/support/error.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/tensor_folder.h"

namespace lathe::tools {

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

void copy_one(const fs::path& from, const fs::path& to) {
  AtomicFile file(to);
  file.write(read_file(from, largest_text_file));
  file.commit();
}

}  // namespace

void add_adapter_option(CLI::App& command, fs::path& adapter) {
  command
      .add_option("--adapter", adapter,
                  "A directory with a LoRA adapter on the model, as PEFT writes it; default: none")
      ->check(CLI::ExistingDirectory);
}

Tokenizer tokenizer_of(const pretrained::AdaptedModel& model) {
  return Tokenizer::load(model.text_folder).for_embeddings(model.model.model->vocabulary_size());
}

std::optional<TokenId> end_token(const pretrained::AdaptedModel& model, const Tokenizer& tokenizer) {
  const fs::path path = model.text_folder / "tokenizer_config.json";
  if (fs::exists(path)) {
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
    throw UserError(fmt::format("{} is a directory that is read", output.string()), "output_folder",
                    "give another --output: its files are in use until the end");
}

void copy_text_files(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const char* name : text_files)
    if (fs::exists(from / name)) copy_one(from / name, to / name);
  const fs::path more = "additional_chat_templates";
  if (!fs::is_directory(from / more)) return;
  fs::create_directories(to / more);
  for (const auto& entry : fs::directory_iterator(from / more))
    if (entry.is_regular_file()) copy_one(entry.path(), to / more / entry.path().filename());
}

void save_as_stored(const pretrained::ModelFiles& model, const fs::path& folder) {
  const TensorFolder files = TensorFolder::open(model.folder);
  pretrained::ModelFiles stored = model;
  stored.weights = Parameters();
  for (const auto& [name, place] : model.places) {
    const HostTensor& value = model.weights.get(name);
    const DType dtype = files.info(place.tensor).dtype;
    // A value that stays as it is is borrowed until it is written.
    stored.weights.set(name, value.dtype() == dtype
                                 ? HostTensor::borrow(dtype, value.shape(), const_cast<std::byte*>(value.data()))
                                 : value.cast(dtype));
  }
  pretrained::save(stored, folder);
}

}  // namespace lathe::tools
