#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/tensor/text/printer.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/families.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

/// Every key that transformers knows for a family: used, harmless or refused.
using namespace lathe;
using Catch::Matchers::Contains;
using nlohmann::json;
using test::test_data;
namespace fs = std::filesystem;

namespace {

const json& library_keys() {
  static const json parsed = json::parse(std::ifstream(test_data("hf/config_keys.json")));
  return parsed.at("families");
}

/// Returns the graph of everything that a model computes, as text, and its number of positions.
std::string computed(const fs::path& path) {
  Graph g("keys");
  const Shape shape{Dim("B"), Dim("T")};
  const json config = json::parse(test::slurp(path / "config.json"));
  const std::string type = config.value("model_type", "");
  std::string more;
  if (type == "vit") {
    const auto vit = pretrained::load_pretrained<pretrained::ImageModel>(path);
    const Tensor images = g.input("pixel_values", f32, vit.model->image_shape(Dim("B")));
    g.output("y", vit.model->has_classes() ? vit.model->loss(images, g.input("labels", i64, {Dim("B")}))
                                           : vit.model->pool(images));
  } else if (type == "t5") {
    const auto t5 = pretrained::load_pretrained<pretrained::Seq2SeqLm>(path);
    const Tensor labels = g.input("labels", i64, {Dim("B"), Dim("S")});
    g.output("y", t5.model->loss({.ids = g.input("input_ids", i64, shape), .decoder_ids = t5.model->shifted(labels)},
                                 labels));
  } else if (type.find("bert") != std::string::npos) {
    const auto bert = pretrained::load_pretrained<pretrained::Encoder>(path);
    const pretrained::EncoderInputs inputs{.ids = g.input("input_ids", i64, shape),
                                           .mask = g.input("attention_mask", i64, shape)};
    g.output("y", bert.model->loss(inputs, g.input("labels", i64, shape)));
  } else {
    const auto model = pretrained::load_pretrained<pretrained::CausalLm>(path);
    const pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, shape)};
    g.output("y", model.model->loss(inputs, g.input("labels", i64, shape)));
    more = std::to_string(model.model->context_length().value_or(0));
  }
  return ir::print(g.finish()) + more;
}

/// A copy of a case's directory with changed keys in config.json.
class Directory {
 public:
  explicit Directory(const std::string& name) {
    fs::copy(test_data("hf/models") / name / "model", path_, fs::copy_options::recursive);
    config_ = json::parse(test::slurp(path_ / "config.json"));
    if (name == "vit") add_pooler();
  }

  struct Result {
    std::string graph, label, text;
  };
  Result with(const json& first, const json& second = json::object()) const {
    json changed = config_;
    changed.update(first);
    changed.update(second);
    test::spit(path_ / "config.json", changed.dump());
    Result result;
    const test::Failure failure = test::failure_of([&] { result.graph = computed(path_); });
    return {result.graph, failure.label, failure.text};
  }
  const json& config() const { return config_; }

 private:
  void add_pooler() const {
    const TensorFolder folder = TensorFolder::open(path_);
    std::vector<HostTensor> values;
    for (const std::string& name : folder.names()) values.push_back(folder.file(name).tensor(name));
    std::vector<PlacedTensor> tensors;
    for (std::size_t i = 0; i < values.size(); ++i)
      tensors.push_back({"model.safetensors", view_of(folder.names()[i], values[i])});
    const std::int64_t d = config_.at("hidden_size");
    const HostTensor weight(f32, {d, d}), bias(f32, {d});
    tensors.push_back({"model.safetensors", view_of("vit.pooler.dense.weight", weight)});
    tensors.push_back({"model.safetensors", view_of("vit.pooler.dense.bias", bias)});
    write_tensor_folder(path_, tensors);
  }

  test::ScratchFolder scratch_;
  fs::path path_ = scratch_ / "model";
  json config_;
};

const pretrained::KeyTable& table_of(const std::string& type) {
  const pretrained::Family* const family = pretrained::find_family(type);
  if (!family) FAIL("no family " << type);
  return family->keys;
}

/// Whether the files decide instead of config.json: an untied model has its output layer in the files.
bool is_decided_by_files(const std::string& key, const std::string& type) {
  return key == "tie_word_embeddings" && type != "t5";
}

void check_rule(const Directory& directory, const pretrained::KeyRule& rule, const json& value, const json& with) {
  using pretrained::KeyUse;
  const std::string key(rule.key);
  const auto before = directory.with(with), after = directory.with(with, {{key, value}});
  INFO(key << " = " << value << " with " << with << "\nbefore: " << before.text << "\nafter: " << after.text);
  REQUIRE(before.label == "no error");
  const bool is_named = after.label != "no error" && after.text.find(key) != std::string::npos;
  switch (rule.use) {
    case KeyUse::harmless:
      CHECK(!rule.reason.empty());
      CHECK(after.label == "no error");
      CHECK(after.graph == before.graph);
      break;
    case KeyUse::refused:
    case KeyUse::alias:
      CHECK(after.label == "config_value");
      CHECK(is_named);
      break;
    case KeyUse::used:
      // The error for a size that differs from the files names the tensor and its shapes.
      CHECK((is_named || after.label.starts_with("model_") ||
             (after.label == "no error" && after.graph != before.graph)));
      break;
  }
}

/// Checks all keys of some families, in parallel with the others.
void check_families(const std::set<std::string>& families) {
  int checked = 0;
  for (const auto& [family, entry] : library_keys().items()) {
    if (!families.contains(family)) continue;
    const Directory directory(entry.at("case"));
    const std::string type = directory.config().at("model_type");
    const pretrained::KeyTable& table = table_of(type);
    std::set<std::string> fed;
    for (const json& row : entry.at("keys")) {
      const std::string key = row.at("key");
      INFO(family << ": " << key);
      const pretrained::KeyRule* rule = table.find(key);
      CHECK(rule);
      if (!rule || is_decided_by_files(key, type)) continue;
      check_rule(directory, *rule, row.at("value"), row.value("with", json::object()));
      fed.insert(key);
    }
    for (const pretrained::KeyRule& rule : table.rules()) {
      if (rule.use == pretrained::KeyUse::used || fed.contains(std::string(rule.key))) continue;
      INFO(family << ": " << rule.key);
      check_rule(directory, rule, 12345, json::object());
    }
    ++checked;
  }
  CHECK(checked == static_cast<int>(families.size()));
}

}  // namespace

TEST_CASE("config.json: every key is used, harmless or rejected: Llama family") {
  check_families({"llama", "mistral", "qwen2", "qwen3", "granite"});
}
TEST_CASE("config.json: every key is used, harmless or rejected: other decoders") {
  check_families({"mixtral", "phi3", "olmo2", "gpt_neox"});
}
TEST_CASE("config.json: every key is used, harmless or rejected: Gemma and GPT-2") {
  check_families({"gemma2", "gemma3", "gpt2"});
}
TEST_CASE("config.json: every key is used, harmless or rejected: other models") {
  check_families({"bert", "roberta", "distilbert", "t5", "vit"});
}

TEST_CASE("config.json: unknown keys are reported, and change nothing") {
  const Directory llama("llama");
  const auto plain = llama.with(json::object());
  const auto changed = llama.with({{"sliding_window", 2}, {"unsloth_version", "1"}});
  CHECK(changed.graph == plain.graph);
  const test::ScratchFolder scratch;
  json config = llama.config();
  config["sliding_window"] = 2;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"finetuned", true}};
  config.erase("rope_parameters");
  test::spit(scratch / "config.json", config.dump());
  const auto notes = pretrained::unread_key_notes(scratch.path());
  REQUIRE(notes.size() == 2);
  CHECK_THAT(notes[0], Contains("config.json: ") && Contains("sliding_window"));
  CHECK_THAT(notes[1], Contains("rope_scaling") && Contains("finetuned"));
}

TEST_CASE("config.json: a missing key has the default of transformers") {
  const Directory mistral("mistral"), gpt_neox("gpt_neox"), gemma2("gemma2");
  const auto without = [](const Directory& directory, const char* key, const json& value) {
    json config = directory.config();
    config.erase(key);
    const test::ScratchFolder scratch;
    INFO(key);
    const auto path = scratch / "model";
    fs::copy(test_data("hf/models") / directory.config().at("model_type").get<std::string>() / "model", path,
             fs::copy_options::recursive);
    test::spit(path / "config.json", config.dump());
    CHECK(computed(path) == directory.with({{key, value}}).graph);
  };
  without(mistral, "sliding_window", 4096);
  without(mistral, "hidden_act", "silu");
  without(gemma2, "attn_logit_softcapping", 50.0);
  without(gemma2, "final_logit_softcapping", 30.0);
  without(gpt_neox, "use_parallel_residual", true);
}

TEST_CASE("config.json: absurd sizes are rejected before anything is allocated") {
  for (const auto& [name, key] : {std::pair{"mixtral", "num_local_experts"},
                                  {"llama", "num_hidden_layers"},
                                  {"gpt2", "n_layer"},
                                  {"bert", "num_hidden_layers"},
                                  {"distilbert", "n_layers"},
                                  {"t5", "num_layers"},
                                  {"t5", "num_decoder_layers"},
                                  {"vit", "num_hidden_layers"}})
    for (const std::int64_t value : {std::int64_t{1000}, std::int64_t{1'000'000'000}, std::int64_t{1} << 62}) {
      const auto result = Directory(name).with({{key, value}});
      INFO(name << " " << key << " " << result.text);
      CHECK(result.label == "config_value");
      CHECK_THAT(result.text, Contains(key) && Contains("tensors"));
    }
  for (const auto& [name, key] : {std::pair{"llama", "vocab_size"},
                                  {"llama", "hidden_size"},
                                  {"llama", "num_attention_heads"},
                                  {"llama", "head_dim"},
                                  {"llama", "intermediate_size"},
                                  {"gpt2", "n_positions"},
                                  {"vit", "num_channels"},
                                  {"vit", "image_size"},
                                  {"t5", "d_kv"}})
    for (const std::int64_t value : {std::int64_t{2'000'000'000}, std::int64_t{1} << 62}) {
      const auto result = Directory(name).with({{key, value}});
      INFO(name << " " << key << " " << result.text);
      CHECK((result.label == "config_value" || result.label == "model_shape"));
    }
}

TEST_CASE("config.json: errors describe the directory") {
  const struct {
    const char* name;
    json change;
    std::vector<std::string> texts;
  } rows[] = {
      {"llama", {{"model_type", "gemma3"}}, {"multimodal", "gemma3_text", "generate, eval, finetune"}},
      {"llama", {{"model_type", "qwen3_next"}}, {"does not know this family", "embed reads bert", "mixtral"}},
      {"llama", {{"model_type", "mllama"}, {"text_config", {{"a", 1}}}}, {"multimodal"}},
      {"llama", {{"model_type", "bert"}}, {"architectures"}},
      {"llama", {{"architectures", {"LlamaForSequenceClassification"}}}, {"a head that classifies texts"}},
      {"bert", {{"architectures", {"BertForTokenClassification"}}}, {"a head that classifies tokens", "BertModel"}},
      {"llama", {{"quantization_config", {{"quant_method", "awq"}}}}, {"quantized for another library", "awq"}},
      {"llama", {{"eos_token_id", {1, 5000}}}, {"eos_token_id is [1,5000]", "outside the vocabulary"}},
      {"gemma3", {{"layer_types", {"full_attention"}}}, {"layer_types", "1 entries"}},
      {"gemma3", {{"use_bidirectional_attention", true}}, {"use_bidirectional_attention is true"}},
      {"gemma3", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}, {"rope_scaling is", "leave one"}},
      {"phi3", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}}}, {"longrope alone"}},
      {"llama", {{"rope_parameters", {{"full_attention", {{"rope_theta", 1.0}}}}}}, {"full_attention is"}},
      {"mistral", {{"layer_types", {"full_attention", "sliding_attention"}}}, {"layer_types is", "Ministral"}},
      {"llama", {{"vocab_size", std::uint64_t{1} << 63}}, {"vocab_size is 9223372036854775808"}},
  };
  for (const auto& row : rows) {
    const auto result = Directory(row.name).with(row.change);
    CHECK(result.label.starts_with("config_"));
    for (const std::string& text : row.texts) CHECK_THAT(result.text, Contains(text));
  }
  for (const char* type : {"chunked_attention", "linear_attention"}) {
    const Directory gemma2("gemma2");
    const std::vector<std::string> types(gemma2.config().at("num_hidden_layers").get<std::size_t>(), type);
    const auto result = gemma2.with({{"layer_types", types}});
    CHECK(result.label == "config_value");
    CHECK_THAT(result.text, Contains("layer_types"));
  }
  // A directory of another kind of model.
  const test::Failure encoder = test::failure_of(
      [] { (void)pretrained::load_pretrained<pretrained::CausalLm>(test_data("hf/models/bert/model")); });
  CHECK_THAT(encoder.text, Contains("it is an encoder, which embed reads"));
  const test::Failure decoder = test::failure_of(
      [] { (void)pretrained::load_pretrained<pretrained::Encoder>(test_data("hf/models/llama/model")); });
  CHECK_THAT(decoder.text, Contains("it is a causal language model, which generate"));
}
