#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "frontend/pretrained/encoders/sentence_config.h"
#include "frontend/pretrained/encoders/sentence_encoder.h"
#include "ir/support/nearest.h"
#include "runtime/files/file_io.h"

namespace lathe::pretrained {

namespace {

constexpr std::string_view mode_prefix = "pooling_mode_";

/// The ways of pooling by the ends of their keys.
const std::map<std::string, bool Pooling::*, std::less<>>& modes() {
  static const std::map<std::string, bool Pooling::*, std::less<>> all{
      {"cls_token", &Pooling::cls},
      {"max_tokens", &Pooling::max},
      {"mean_tokens", &Pooling::mean},
      {"mean_sqrt_len_tokens", &Pooling::mean_sqrt},
      {"weightedmean_tokens", &Pooling::weighted_mean},
      {"lasttoken", &Pooling::last},
  };
  return all;
}

Pooling read_pooling(const Config& config, const Dim& width) {
  Pooling pooling;
  const std::int64_t wanted = config.integer("word_embedding_dimension");
  if (!width.is(wanted))
    config.reject("word_embedding_dimension", fmt::format("the encoder gives {}", width.to_string()));
  if (!config.boolean("include_prompt", true)) config.reject("include_prompt", "Lathe pools all tokens");
  bool any = false;
  for (const std::string& key : config.keys()) {
    if (!key.starts_with(mode_prefix)) continue;
    const auto found = modes().find(key.substr(mode_prefix.size()));
    const bool is_on = config.boolean(key, false);
    any |= is_on;
    if (found != modes().end())
      pooling.*found->second = is_on;
    else if (is_on)
      config.reject(key, "Lathe does not know this way of pooling");
  }
  if (!any) config.reject("pooling_mode_mean_tokens", "one way of pooling or more is true");
  return pooling;
}

/// The folder of a module, which lies within that of the model.
std::string path_of(const Config& module) {
  const std::string path = module.text("path");
  const std::filesystem::path parts(path);
  const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (parts.is_absolute() || leaves) module.reject("path", "it names a folder within that of the model");
  return path;
}

/// What modules.json says comes after the encoder.
Pooling read_modules(ModelFiles& files, const std::string& text, const Dim& width) {
  const std::string name = (files.folder / "modules.json").string();
  const Config list = Config::parse(fmt::format("{{\"modules\": {}}}", text), name);
  Pooling pooling;
  int step = 0;
  for (const Config& module : list.objects("modules")) {
    const std::string type = module.text("type");
    const std::string kind = type.substr(type.rfind('.') + 1);
    const std::string path = path_of(module);
    if (step == 0 && kind == "Transformer" && path.empty()) {
    } else if (step == 1 && kind == "Pooling") {
      const std::string* found = read_other(files, path + "/config.json");
      if (!found) module.reject("path", "that folder has no config.json");
      pooling = read_pooling(Config::parse(*found, (files.folder / path / "config.json").string()), width);
    } else if (step == 2 && kind == "Normalize") {
      pooling.normalize = true;
    } else {
      module.reject("type", "Lathe knows a Transformer in the folder itself, then Pooling, then perhaps Normalize");
    }
    ++step;
  }
  if (step < 2) list.reject("modules", "there is no pooling");
  return pooling;
}

/// What the Transformer module says of texts: its file has the name that the library had for the family once.
TextOptions read_texts(ModelFiles& files, std::int64_t positions) {
  TextOptions texts{.longest = positions};
  for (const std::string family : {"bert", "roberta", "distilbert", "xlm-roberta"}) {
    const std::string name = fmt::format("sentence_{}_config.json", family);
    const std::string* text = read_other(files, name);
    if (!text) continue;
    const Config config = Config::parse(*text, (files.folder / name).string());
    texts.lower_case = config.boolean("do_lower_case", false);
    if (!config.has("max_seq_length")) break;
    texts.longest = config.integer("max_seq_length");
    if (texts.longest < 1) config.reject("max_seq_length", "give 1 or more");
    if (texts.longest > positions)
      config.reject("max_seq_length", fmt::format("the encoder has {} positions", positions));
    return texts;
  }
  const std::filesystem::path tokenizer = files.folder / "tokenizer_config.json";
  if (!std::filesystem::exists(tokenizer)) return texts;
  const Config config = Config::parse(read_file(tokenizer, largest_config), tokenizer.string());
  // Some files write "none" as a number like 1e30.
  const double most = config.real("model_max_length", static_cast<double>(positions));
  if (most >= 1 && most < static_cast<double>(positions)) texts.longest = static_cast<std::int64_t>(most);
  return texts;
}

}  // namespace

PretrainedSentenceEncoder load_sentence_encoder(const std::filesystem::path& folder) {
  PretrainedEncoder encoder = load_encoder(folder);
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
