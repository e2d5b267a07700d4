#include "models/pretrained/families.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/model_files.h"

namespace lathe::pretrained {

namespace families {
#define LATHE_FAMILY(name) Family name();
#include "models/pretrained/families.def"
#undef LATHE_FAMILY
}  // namespace families

namespace {

struct KindText {
  ModelKind kind;
  std::string_view noun, readers;
};

constexpr KindText kinds[] = {
    {ModelKind::causal, "a causal language model", "generate, eval, finetune and merge read"},
    {ModelKind::seq2seq, "a model of an encoder and a decoder", "generate and merge read"},
    {ModelKind::encoder, "an encoder", "embed reads"},
    {ModelKind::image, "an image model", "load_pretrained<ImageModel>() of the library reads"},
};

/// Whether the model wraps a text model together with an image or audio model.
bool is_multimodal(const Config& config, const std::string& type) {
  for (const char* part : {"text_config", "vision_config", "audio_config", "llm_config"})
    if (config.has(part)) return true;
  return type.ends_with("_vl") || type.starts_with("llava") || type == "gemma3" || type == "mllama";
}

std::string all_names() {
  std::string text;
  for (const KindText& each : kinds)
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", each.readers, fmt::join(model_types(each.kind), ", "));
  return text;
}

}  // namespace

ModelKind kind_of(const Family& family) { return static_cast<ModelKind>(family.make.index()); }

const std::vector<Family>& all_families() {
  static const std::vector<Family> all{
#define LATHE_FAMILY(name) families::name(),
#include "models/pretrained/families.def"
#undef LATHE_FAMILY
  };
  return all;
}

std::vector<std::string> model_types(ModelKind kind) {
  std::vector<std::string> types;
  for (const Family& family : all_families())
    if (kind_of(family) == kind) types.insert(types.end(), family.model_types.begin(), family.model_types.end());
  return types;
}

const Family* find_family(std::string_view model_type) {
  const auto found = std::ranges::find_if(all_families(), [&](const Family& family) {
    return std::ranges::find(family.model_types, model_type) != family.model_types.end();
  });
  return found == all_families().end() ? nullptr : &*found;
}

std::optional<ModelKind> kind_of(const Config& config) {
  const Family* const family = find_family(config.text("model_type", ""));
  return family ? std::optional(kind_of(*family)) : std::nullopt;
}

const Family& family_of(const Config& config, ModelKind wanted) {
  const std::string type = config.text("model_type");
  if (const Family* const family = find_family(type)) {
    const ModelKind kind = kind_of(*family);
    if (kind == wanted) return *family;
    const KindText& text = *std::ranges::find(kinds, kind, &KindText::kind);
    config.reject("model_type", fmt::format("it is {}, which {} {}", text.noun, text.readers, type));
  }
  if (is_multimodal(config, type))
    config.reject("model_type",
                  fmt::format("it is a multimodal model around a text model, and Lathe reads text models alone; "
                              "{}",
                              all_names()));
  config.reject("model_type", fmt::format("Lathe does not know this family; {}", all_names()));
}

std::string sentence_file(std::string_view model_type) { return fmt::format("sentence_{}_config.json", model_type); }

std::vector<std::string> unread_key_notes(const std::filesystem::path& folder) {
  const Config config = read_config(folder).config;
  const Family* const family = find_family(config.text("model_type", ""));
  return family ? unread_key_notes(config, *family) : std::vector<std::string>();
}

}  // namespace lathe::pretrained
