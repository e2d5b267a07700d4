#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/nn/low_rank.h"
#include "models/pretrained/lora/lora.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using Catch::Matchers::Contains;
using pretrained::KeyRule;
using pretrained::KeyUse;
using Json = nlohmann::json;

namespace {

Json plain() {
  return {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"target_modules", {"q_proj", "v_proj"}}};
}

struct Sample {
  Json value, others = Json::object();
};
const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> all{
      {"alpha_pattern", {{{"q_proj", 99}}}},
      {"base_model_name_or_path", {"elsewhere"}},
      {"exclude_modules", {{"q_proj"}}},
      {"init_lora_weights", {"gaussian"}},
      {"layers_pattern", {{"nothing"}, {{"layers_to_transform", {0}}}}},
      {"layers_to_transform", {{0}}},
      {"lora_alpha", {31}},
      {"lora_dropout", {0.3}},
      {"modules_to_save", {{"lm_head"}}},
      {"peft_type", {"IA3"}},
      {"r", {3}},
      {"rank_pattern", {{{"q_proj", 2}}}},
      {"target_modules", {{"o_proj"}}},
      {"use_rslora", {true}},
  };
  return all;
}

pretrained::LoraConfig read(const Json& config) {
  return pretrained::read_lora_config(pretrained::Config::parse(config.dump(), "adapter_config.json"));
}

/// Returns the adapter that a configuration creates on a model (its layers, their scales and values), or the error.
std::string made(const Json& config) {
  auto model = pretrained::load_pretrained<pretrained::CausalLm>(test::test_data("hf/models/llama/model"));
  try {
    const pretrained::Lora lora = add_lora(model, read(config), 1);
    std::string text = fmt::format("{} {}\n", lora.config.base_model, lora.config.dropout);
    for (const nn::Linear& layer : lora.layers)
      text += fmt::format("{} {}\n", layer.path(), layer.low_rank()->scale());
    for (const nn::Parameter& parameter : lora.parameters())
      text += fmt::format("{} {} {}\n", parameter.name(), parameter.shape().to_string(),
                          model.weights.get(parameter.name()).get(0));
    return text;
  } catch (const UserError& error) {
    return error.what();
  }
}

void check_rule(const KeyRule& rule) {
  const std::string key(rule.key);
  INFO(key);
  Json with = plain();
  switch (rule.use) {
    case KeyUse::used: {
      const Sample& sample = samples().at(key);
      with.update(sample.others);
      const std::string before = made(with);
      with[key] = sample.value;
      CHECK(made(with) != before);
      return;
    }
    case KeyUse::harmless: {
      CHECK_FALSE(rule.reason.empty());
      const std::string before = made(with);
      with[key] = "x";
      CHECK(made(with) == before);
      return;
    }
    case KeyUse::refused: {
      with[key] = {{"any", 1}};
      const test::Failure failure = test::failure_of([&] { (void)read(with); });
      CHECK(failure.label == "config_value");
      CHECK_THAT(failure.text, Contains("adapter_config.json: " + key + " is "));
      return;
    }
    case KeyUse::alias: FAIL("there are no aliases");
  }
}

}  // namespace

TEST_CASE("adapter_config.json: every key changes the adapter, is rejected by name, or is harmless") {
  for (const KeyRule& rule : pretrained::lora_keys().rules()) check_rule(rule);
}

TEST_CASE("adapter_config.json: the table has the keys of LoraConfig, and others are rejected") {
  const Json file = Json::parse(std::ifstream(test::test_data("hf/library_keys.json")));
  std::set<std::string> known;
  for (const KeyRule& rule : pretrained::lora_keys().rules()) known.emplace(rule.key);
  CHECK(known == file.at("LoraConfig").get<std::set<std::string>>());
  Json with = plain();
  with["lora_alhpa"] = 3;
  CHECK_THAT(test::failure_of([&] { (void)read(with); }).text, Contains("lora_alhpa"));
}

TEST_CASE("adapters on tied tables, and on embeddings, are rejected by name") {
  const auto refusal = [](const std::string& model, const Json& changes) {
    auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(test::test_data("hf/models") / model / "model");
    Json config = plain();
    config.update(changes);
    pretrained::LoraConfig lora = read(config);
    const test::Failure failure = test::failure_of([&] { (void)add_lora(loaded, lora, 1); });
    CHECK(failure.label == "adapter_target");
    return failure.text;
  };
  CHECK_THAT(refusal("qwen2", {{"target_modules", {"q_proj", "lm_head"}}}), Contains("lm_head shares the table"));
  CHECK_THAT(refusal("qwen2", {{"modules_to_save", {"lm_head"}}}), Contains("lm_head shares the table"));
  CHECK_THAT(refusal("qwen2", {{"modules_to_save", {"embed_tokens"}}}), Contains("embed_tokens"));
  CHECK_THAT(refusal("llama", {{"target_modules", {"embed_tokens"}}}), Contains("is of kind Embedding"));
}
