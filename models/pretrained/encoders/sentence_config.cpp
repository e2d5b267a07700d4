#include "models/pretrained/encoders/sentence_config.h"

#include <map>

namespace lathe::pretrained {

namespace {

Similarity read_similarity(const Config& config) {
  constexpr std::string_view key = "similarity_fn_name";
  static const std::map<std::string, Similarity, std::less<>> all{{"cosine", Similarity::cosine},
                                                                  {"dot", Similarity::dot},
                                                                  {"dot_product", Similarity::dot},
                                                                  {"euclidean", Similarity::euclidean},
                                                                  {"manhattan", Similarity::manhattan}};
  const auto found = all.find(config.text(key));
  if (found == all.end()) config.reject(key, "Lathe knows cosine, dot, euclidean and manhattan");
  return found->second;
}

}  // namespace

const KeyTable& sentence_keys() {
  static const KeyTable table({{
      used("default_prompt_name"),
      used("prompts"),
      used("similarity_fn_name", "\"cosine\""),
      used("truncate_dim"),
      refused("model_type", "[\"SentenceTransformer\"]", "Lathe computes one vector for each text"),
      harmless("__version__", "says who wrote the file"),
  }});
  return table;
}

void read_sentence_config(ModelFiles& files, Pooling& pooling, TextOptions& texts) {
  const std::string name = "config_sentence_transformers.json";
  const std::string* text = read_other(files, name);
  if (!text) return;
  const Config config = known_keys(Config::parse(*text, (files.folder / name).string()), sentence_keys());
  if (config.has("prompts")) {
    const Config prompts = config.object("prompts");
    for (const std::string& key : prompts.keys()) texts.prompts.emplace(key, prompts.text(key));
  }
  if (config.has("default_prompt_name")) {
    texts.default_prompt = config.text("default_prompt_name");
    if (!texts.prompts.contains(*texts.default_prompt))
      config.reject("default_prompt_name", "it names one of the prompts");
  }
  if (config.has("similarity_fn_name")) texts.similarity = read_similarity(config);
  if (!config.has("truncate_dim")) return;
  pooling.truncate_dim = config.integer("truncate_dim");
  if (*pooling.truncate_dim < 1) config.reject("truncate_dim", "give 1 or more");
}

}  // namespace lathe::pretrained
