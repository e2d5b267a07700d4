#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "ir/support/nearest.h"
#include "models/pretrained/encoders/sentence_config.h"
#include "models/pretrained/encoders/sentence_encoder.h"
#include "models/pretrained/encoders/sentence_keys.h"
#include "models/pretrained/families.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view mode_prefix = "pooling_mode_";

/// A pooling mode: the end of its key in older files, and its name in newer ones.
struct Mode {
  std::string_view key, name;
  bool Pooling::* member;
};

/// In the order in which their vectors are concatenated.
constexpr Mode modes[] = {
    {"cls_token", "cls", &Pooling::cls},
    {"max_tokens", "max", &Pooling::max},
    {"mean_tokens", "mean", &Pooling::mean},
    {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens", &Pooling::mean_sqrt},
    {"weightedmean_tokens", "weightedmean", &Pooling::weighted_mean},
    {"lasttoken", "lasttoken", &Pooling::last},
};

/// Reads pooling_mode of newer files: a name or a list of names.
Pooling read_named_modes(const Config& config) {
  const std::string_view key = "pooling_mode";
  Pooling pooling;
  const Mode* last = nullptr;
  for (const std::string& name : config.is_list(key) ? config.texts(key) : std::vector{config.text(key)}) {
    const Mode* const mode =
        std::find_if(std::begin(modes), std::end(modes), [&](const Mode& each) { return each.name == name; });
    if (mode == std::end(modes)) config.reject(key, fmt::format("Lathe does not know {} as a way of pooling", name));
    if (last && mode <= last)
      config.reject(key,
                    "Lathe joins cls, max, mean, mean_sqrt_len_tokens, weightedmean and lasttoken in this order");
    pooling.*mode->member = true;
    last = mode;
  }
  if (!last) config.reject(key, "name one way of pooling or more");
  return pooling;
}

Pooling read_pooling(const Config& file, const Dim& width) {
  // Only reject an unknown pooling mode if it is on.
  for (const std::string& key : check_keys(file, pooling_keys()))
    if (key.starts_with(mode_prefix) && file.boolean(key, false))
      file.reject(key, "Lathe does not know this way of pooling");
  const Config config = read_keys(file, pooling_keys());
  Pooling pooling;
  const std::int64_t wanted = config.integer("word_embedding_dimension");
  if (!width.is(wanted))
    config.reject("word_embedding_dimension", fmt::format("the encoder gives {}", width.to_string()));
  if (config.has("pooling_mode")) return read_named_modes(config);
  bool any = false;
  for (const Mode& mode : modes) {
    pooling.*mode.member = config.boolean(fmt::format("{}{}", mode_prefix, mode.key), false);
    any |= pooling.*mode.member;
  }
  if (!any) config.reject("pooling_mode_mean_tokens", "one way of pooling or more is true");
  return pooling;
}

/// Returns the folder of a module, which must be inside that of the model.
std::string path_of(const Config& module) {
  const std::string path = module.text("path");
  const std::filesystem::path parts(path);
  const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (parts.is_absolute() || leaves) module.reject("path", "it names a folder within that of the model");
  return path;
}

/// Reads the modules after the encoder from modules.json.
Pooling read_modules(ModelFiles& files, const std::string& text, const Dim& width) {
  const std::string name = (files.folder / "modules.json").string();
  const Config list = Config::parse(fmt::format("{{\"modules\": {}}}", text), name);
  Pooling pooling;
  int step = 0;
  for (const Config& module : list.objects("modules")) {
    (void)check_keys(module, module_keys());
    const std::string type = module.text("type");
    const std::string kind = type.substr(type.rfind('.') + 1);
    const std::string path = path_of(module);
    if (step == 0 && kind == "Transformer" && path.empty()) {
    } else if (step == 1 && kind == "Pooling") {
      const std::string* found = read_other(files, path + "/config.json");
      if (!found) module.reject("path", "that folder has no config.json");
      pooling = read_pooling(Config::parse(*found, (files.folder / path / "config.json").string()), width);
    } else if (step == 2 && kind == "Normalize") {
      if (const std::string* found = read_other(files, path + "/config.json"))
        (void)check_keys(Config::parse(*found, (files.folder / path / "config.json").string()), normalize_keys());
      pooling.normalize = true;
    } else {
      module.reject("type", "Lathe knows a Transformer in the folder itself, then Pooling, then perhaps Normalize");
    }
    ++step;
  }
  if (step < 2) list.reject("modules", "there is no pooling");
  return pooling;
}

/// Reads the text options of the Transformer module. Its file is named after the family in older versions of the
/// library.
TextOptions read_texts(ModelFiles& files, std::int64_t positions) {
  TextOptions texts{.longest = positions};
  for (const std::string& family : model_types(ModelKind::encoder)) {
    const std::string name = sentence_file(family);
    const std::string* text = read_other(files, name);
    if (!text) continue;
    const Config config = Config::parse(*text, (files.folder / name).string());
    (void)check_keys(config, sentence_encoder_keys());
    texts.lower_case = config.boolean("do_lower_case", false);
    if (!config.has("max_seq_length")) break;
    texts.longest = config.integer("max_seq_length");
    if (texts.longest < 1) config.reject("max_seq_length", "give 1 or more");
    if (texts.longest > positions)
      config.reject("max_seq_length", fmt::format("the encoder has {} positions", positions));
    return texts;
  }
  const std::filesystem::path tokenizer = files.folder / "tokenizer_config.json";
  if (!path_exists(tokenizer)) return texts;
  const Config config = Config::parse(read_file(tokenizer, largest_config), tokenizer.string());
  // Some files write "none" as a number like 1e30.
  const char* const key = config.has("model_max_length") ? "model_max_length" : "max_len";
  const double most = config.real(key, static_cast<double>(positions));
  if (most >= 1 && most < static_cast<double>(positions)) texts.longest = static_cast<std::int64_t>(most);
  return texts;
}

}  // namespace

template <>
PretrainedSentenceEncoder load_pretrained(const std::filesystem::path& folder, const LoadOptions& options) {
  auto encoder = load_pretrained<Encoder>(folder, options);
  PretrainedSentenceEncoder loaded{std::move(static_cast<ModelFiles&>(encoder)), nullptr};
  Pooling pooling{.mean = true};
  if (const std::string* modules = read_other(loaded, "modules.json"))
    pooling = read_modules(loaded, *modules, encoder.model->width());
  TextOptions texts = read_texts(loaded, encoder.model->longest());
  read_sentence_config(loaded, pooling, texts);
  loaded.model = std::make_unique<SentenceEncoder>(std::move(encoder.model), pooling, texts);
  return loaded;
}

}  // namespace lathe::pretrained
