#include "models/pretrained/keys/families.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/model_files.h"

namespace lathe::pretrained {

namespace {

struct KindOfModel {
  ModelKind kind;
  std::string_view noun, readers;
  std::vector<FamilyRecord> families;
};

std::vector<KindOfModel> all_kinds() {
  return {
      {ModelKind::causal, "a causal language model", "generate, eval, finetune and merge read", causal_records()},
      {ModelKind::seq2seq, "a model of an encoder and a decoder", "generate and merge read", seq2seq_records()},
      {ModelKind::encoder, "an encoder", "embed reads", encoder_records()},
      {ModelKind::image, "an image model", "load_image_model() of the library reads", image_records()},
  };
}

std::string names_of(const std::vector<FamilyRecord>& families) {
  std::vector<std::string_view> names;
  for (const FamilyRecord& family : families) names.push_back(family.model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool holds(const std::vector<FamilyRecord>& families, const std::string& type) {
  return std::any_of(families.begin(), families.end(), [&](const FamilyRecord& f) { return f.model_type == type; });
}

/// Whether the model wraps a text model together with an image or audio model.
bool is_multimodal(const Config& config, const std::string& type) {
  for (const char* part : {"text_config", "vision_config", "audio_config", "llm_config"})
    if (config.has(part)) return true;
  return type.ends_with("_vl") || type.starts_with("llava") || type == "gemma3" || type == "mllama";
}

std::string all_families() {
  std::string text;
  for (const KindOfModel& kind : all_kinds())
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", kind.readers, names_of(kind.families));
  return text;
}

}  // namespace

void reject_model_type(const Config& config, ModelKind wanted) {
  const std::string type = config.text("model_type");
  for (const KindOfModel& kind : all_kinds())
    if (kind.kind != wanted && holds(kind.families, type))
      config.reject("model_type", fmt::format("it is {}, which {} {}", kind.noun, kind.readers, type));
  if (is_multimodal(config, type))
    config.reject("model_type",
                  fmt::format("it is a multimodal model around a text model, and Lathe reads text models alone; "
                              "{}",
                              all_families()));
  config.reject("model_type", fmt::format("Lathe does not know this family; {}", all_families()));
}

std::vector<std::string> unread_key_notes(const std::filesystem::path& folder) {
  const Config config = read_config(folder).config;
  const std::string type = config.text("model_type", "");
  for (const KindOfModel& kind : all_kinds())
    for (const FamilyRecord& family : kind.families)
      if (family.model_type == type) return unread_key_notes(config, family.keys());
  return {};
}

}  // namespace lathe::pretrained
