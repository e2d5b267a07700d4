#include "tools/finetune/model_directory.h"

#include <fmt/core.h>

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

fs::path base_of(const fs::path& adapter) {
  const std::string named = pretrained::read_lora_config(adapter).base_model;
  for (const fs::path& path : {fs::path(named), adapter / named})
    if (!named.empty() && fs::is_directory(path)) return path;
  throw UserError(fmt::format("the model of the adapter in {}, {}, is no directory here", adapter.string(),
                              named.empty() ? "which it does not name" : named),
                  "adapter_base", "correct base_model_name_or_path in its adapter_config.json");
}

void copy_one(const fs::path& from, const fs::path& to) {
  AtomicFile file(to);
  file.write(read_file(from, largest_text_file));
  file.commit();
}

}  // namespace

LoadedModel load_model(const fs::path& folder) {
  if (fs::exists(folder / "config.json") || !fs::exists(folder / "adapter_config.json"))
    return {.model = pretrained::load(folder), .folder = folder};
  const fs::path base = base_of(folder);
  LoadedModel loaded{.model = pretrained::load(base), .folder = folder};
  loaded.lora = pretrained::load_lora(loaded.model, folder);
  if (!fs::exists(folder / "tokenizer.json")) loaded.folder = base;
  return loaded;
}

std::optional<TokenId> end_token(const LoadedModel& model, const Tokenizer& tokenizer) {
  const fs::path path = model.folder / "tokenizer_config.json";
  if (fs::exists(path)) {
    const pretrained::Config config = read_config(path);
    if (config.is_text("eos_token")) return tokenizer.id_of(config.text("eos_token"));
    if (config.has("eos_token")) return tokenizer.id_of(config.object("eos_token").text("content"));
  }
  constexpr const char* key = "eos_token_id";
  const pretrained::Config& config = model.model.config;
  if (!config.is_set(key)) return std::nullopt;
  return static_cast<TokenId>(config.is_list(key) ? config.integers(key).front() : config.integer(key));
}

std::optional<ChatTemplates> chat_templates(const fs::path& folder) {
  try {
    return ChatTemplates::load(folder);
  } catch (const UserError& error) {
    if (error.label() != "chat_template") throw;
    return std::nullopt;
  }
}

std::optional<std::int64_t> longest_context(const pretrained::Config& config) {
  for (const char* key : {"n_positions", "max_position_embeddings"})
    if (config.has(key)) return config.integer(key);
  return std::nullopt;
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

void save_as_stored(const pretrained::Pretrained& model, const fs::path& folder) {
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
