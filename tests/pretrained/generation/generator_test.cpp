#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/generation/cached_lm.h"
#include "models/generation/generator.h"
#include "models/generation/stop_strings.h"
#include "tests/pretrained/cases/cases.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using Catch::Contains;
using test::error_label;
using test::test_data;
using Ids = std::vector<std::int64_t>;
namespace fs = std::filesystem;

namespace {

fs::path folder() { return test_data("hf/models/qwen3/model"); }

/// One generator for all tests, so that code is compiled once.
Generator& qwen() {
  static test::KernelStore store;
  static Generator made = Generator::load(folder(), {.chunk = 5, .cache = &store});
  return made;
}

struct Row {
  std::string prompt, text;
  Ids new_ids;
};
std::vector<Row> rows() {
  const auto cases = nlohmann::json::parse(std::ifstream(test_data("hf/cases.json")));
  std::vector<Row> found;
  for (const auto& item : cases.at("models"))
    if (item.at("name") == "qwen3")
      for (const auto& row : item.at("texts"))
        found.push_back({.prompt = row.at("prompt").get<std::string>(),
                         .text = row.at("text").get<std::string>(),
                         .new_ids = row.at("new_ids").get<Ids>()});
  return found;
}

GenerationOptions greedy_for(std::int64_t tokens) {
  GenerationOptions options;
  options.max_new_tokens = tokens;
  return options;
}

}  // namespace

TEST_CASE("generator: texts match transformers, alone and batched") {
  std::vector<std::string> prompts;
  const std::vector<Row> known = rows();
  REQUIRE(known.size() >= 3);
  for (const Row& row : known) {
    INFO(row.prompt);
    prompts.push_back(row.prompt);
    // A chat prompt has its special tokens already; the tokenizer adds none.
    TextPieces pieces = qwen().generate(row.prompt, greedy_for(24));
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    const Generation& g = pieces.generation();
    CHECK(g.tokens() == row.new_ids);
    CHECK(g.finish() == Finish::length);
    CHECK(text == g.text());
    const std::vector<TokenId> ids(row.new_ids.begin(), row.new_ids.end());
    CHECK(text == qwen().tokenizer().decode(ids));
    CHECK(row.text == qwen().tokenizer().decode(ids, false));
  }
  Generation all = qwen().start(prompts, greedy_for(24));
  all.run();
  for (std::size_t i = 0; i < known.size(); ++i) {
    INFO(known[i].prompt);
    CHECK(all.tokens(i) == known[i].new_ids);
  }
}

TEST_CASE("generator: a stop token or string ends one text, and the others continue") {
  const std::vector<Row> known = rows();
  GenerationOptions options = greedy_for(24);
  const Ids &first = known[1].new_ids, &second = known[2].new_ids;
  // A token of the first text that the second one does not contain.
  const auto stop = std::find_if(first.begin() + 3, first.end(), [&](std::int64_t token) {
    return std::find(second.begin(), second.end(), token) == second.end();
  });
  REQUIRE(stop != first.end());
  options.stop_tokens = {*stop};
  const std::vector<std::string> prompts{known[1].prompt, known[2].prompt};
  Generation two = qwen().start(prompts, options);
  two.run();
  CHECK(two.finish(0) == Finish::stop_token);
  CHECK(two.tokens(0) == Ids(first.begin(), std::find(first.begin(), first.end(), *stop) + 1));
  CHECK(two.finish(1) == Finish::length);
  CHECK(two.tokens(1) == second);

  TextPieces whole = qwen().generate(known[2].prompt, greedy_for(24));
  std::string text;
  for (const std::string& piece : whole) text += piece;
  const std::size_t middle = text.find("we");
  REQUIRE(middle != std::string::npos);
  options.stop_tokens.clear();
  options.stop_strings = {"never there", "we"};
  TextPieces cut = qwen().generate(known[2].prompt, options);
  std::string pieces;
  for (const std::string& piece : cut) pieces += piece;
  CHECK(cut.generation().finish() == Finish::stop_string);
  CHECK(pieces == text.substr(0, middle));
}

TEST_CASE("generator: a seed reproduces the same text, also in a batch") {
  GenerationOptions options = greedy_for(16);
  options.sampling = {.temperature = 1.5, .top_k = 40};
  options.seed = 7;
  const auto drawn = [&](const std::vector<std::string>& prompts) {
    Generation g = qwen().start(prompts, options);
    g.run();
    std::vector<Ids> tokens;
    for (std::size_t i = 0; i < g.size(); ++i) tokens.push_back(g.tokens(i));
    return tokens;
  };
  const auto once = drawn({"To be"}), again = drawn({"To be"}), two = drawn({"To be", "To be"});
  CHECK(once == again);
  CHECK(two[0] == once[0]);
  CHECK(two[1] != two[0]);
  options.seed = 8;
  CHECK(drawn({"To be"})[0] == two[1]);
}

TEST_CASE("generator: a repetition penalty makes earlier tokens less likely") {
  GenerationOptions options = greedy_for(12);
  options.sampling.repetition_penalty = 1e6;
  Generation g = qwen().start(std::vector<std::string>{"To be, or not to be"}, options);
  g.run();
  Ids seen = g.prompt();
  for (const std::int64_t token : g.tokens()) {
    CHECK(std::find(seen.begin(), seen.end(), token) == seen.end());
    seen.push_back(token);
  }
}

TEST_CASE("generator: a conversation uses the chat template of the directory") {
  const std::vector<ChatMessage> messages{{"user", "Speak"}};
  const Ids tokens = qwen().chat_tokens(messages);
  const std::string text = qwen().tokenizer().decode(std::vector<TokenId>(tokens.begin(), tokens.end()), false);
  CHECK(text.find("<|im_start|>user\nSpeak<|im_end|>") != std::string::npos);
  CHECK(text.ends_with("<|im_start|>assistant\n"));
  TextPieces pieces = qwen().chat(messages, greedy_for(4));
  for (const std::string& piece : pieces) (void)piece;
  CHECK(pieces.generation().prompt() == tokens);
}

TEST_CASE("generator: uses the generation settings of the directory") {
  CHECK(load_generation_options(folder()).stop_tokens == Ids{2});
  CHECK(load_generation_options(folder()).sampling.greedy());
  const fs::path made = fs::temp_directory_path() / "lathe_generation_options";
  fs::create_directories(made);
  const auto with = [&](const std::string& text) {
    std::ofstream(made / "generation_config.json") << text;
    return load_generation_options(made);
  };
  const GenerationOptions options = with(
      R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "eos_token_id": [5, 7], "repetition_penalty": 1.1})");
  CHECK(options.stop_tokens == Ids{5, 7});
  CHECK(options.sampling.temperature == 0.6);
  CHECK(options.sampling.top_p == 0.9);
  CHECK(options.sampling.top_k == 50);
  CHECK(options.sampling.repetition_penalty == 1.1);
  CHECK(with(R"({"temperature": 0.6})").sampling.greedy());
  CHECK(error_label([&] { with(R"({"do_sample": true, "top_p": 2})"); }) == "decoding_options");
  CHECK(error_label([&] { with(R"({"eos_token_id": "x"})"); }) == "config_type");
  CHECK(error_label([&] { with(R"({"max_new_tokens": 0})"); }) == "config_value");
  fs::remove_all(made);
}

TEST_CASE("generator: rejects an end token of generation_config.json outside the vocabulary") {
  const test::ScratchFolder made;
  test::spit(made.path() / "config.json", R"({"model_type": "gpt2", "vocab_size": 8, "eos_token_id": 7})");
  for (const char* tokens : {"8", "[7, 8]", "-1"}) {
    test::spit(made.path() / "generation_config.json", fmt::format(R"({{"eos_token_id": {}}})", tokens));
    for (const auto& load : {+[](const fs::path& in) { (void)load_generation_options(in); },
                             +[](const fs::path& in) { (void)load_stop_tokens(in); }}) {
      const test::Failure failed = test::failure_of([&] { load(made.path()); });
      CHECK(failed.label == "config_value");
      CHECK_THAT(failed.text, Contains("generation_config.json: eos_token_id is ") && Contains("0 to 7"));
    }
  }
  test::spit(made.path() / "generation_config.json", R"({"eos_token_id": [7, 0]})");
  CHECK(load_stop_tokens(made.path()) == Ids{7, 0});
}

TEST_CASE("generator: rejects invalid prompts, and stops at the last position") {
  SequenceModel& lm = qwen().sequences();
  CHECK(error_label([&] { lm.start({}); }) == "generation_prompt");
  CHECK(error_label([&] { lm.start(std::vector<Ids>{{1}, {}}); }) == "generation_prompt");
  CHECK(error_label([&] { lm.start(std::vector<Ids>{{1, 1000000}}); }) == "index_range");
  lm.start(std::vector<Ids>{{1, 2}});
  CHECK(error_label([&] { lm.step(Ids{1, 2}); }) == "generation_batch");
  const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(folder());
  CHECK(error_label([&] { CachedLm(*loaded.model, loaded.weights, {.chunk = 0}); }) == "generation_chunk");
  CHECK(error_label([&] { qwen().generate("x", greedy_for(0)); }) == "generation_length");

  const auto gpt2 = pretrained::load_pretrained<pretrained::CausalLm>(test_data("hf/models/gpt2/model"));
  CachedLm short_lm(*gpt2.model, gpt2.weights);
  const std::int64_t most = short_lm.most_positions();
  CHECK(most == gpt2.config.integer("n_positions"));
  const std::vector<Ids> full{Ids(static_cast<std::size_t>(most), 1)};
  short_lm.start(full);
  CHECK(error_label([&] { short_lm.step(Ids{1}); }) == "generation_length");
  CHECK(error_label([&] { short_lm.start(std::vector<Ids>{Ids(static_cast<std::size_t>(most) + 1, 1)}); }) ==
        "generation_length");
}

TEST_CASE("generator: the cache grows and keeps its contents") {
  // Longer than the first 256 positions: whole and in steps.
  const Ids ids = [] {
    Ids made;
    for (int i = 0; i < 300; ++i) made.push_back((i * 37 + 11) % 100 + 3);
    return made;
  }();
  for (const char* name : {"qwen3", "gemma3", "mistral"}) {
    INFO(name);
    const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(test_data("hf/models") / name / "model");
    test::KernelStore store;
    CachedLm whole(*loaded.model, loaded.weights, {.dtype = f64, .cache = &store}),
        grown(*loaded.model, loaded.weights, {.dtype = f64, .chunk = 16, .cache = &store});
    const HostTensor want = whole.start(std::vector<Ids>{ids});
    grown.start(std::vector<Ids>{Ids(ids.begin(), ids.begin() + 250)});
    CHECK(grown.capacity() == 256);
    for (std::size_t i = 250; i < ids.size(); ++i) grown.step(std::span(&ids[i], 1));
    CHECK(grown.capacity() == 1024);
    CHECK(test::error_of(grown.logits(), want) <= 1e-10);
    CHECK(whole.length() == 300);
  }
}

TEST_CASE("stop strings withhold text that may be their start") {
  StopStrings stops({"abc", "", "ca"});
  CHECK(stops.push("xa") == "x");
  CHECK(stops.push("b") == "");
  CHECK(stops.push("d") == "abd");
  CHECK(stops.push("c") == "");
  CHECK(stops.finish() == "c");
  CHECK_FALSE(stops.met());
  StopStrings met({"abc", "bc"});
  CHECK(met.push("zab") == "z");
  CHECK(met.push("cdef") == "");
  CHECK(met.met());
  CHECK(met.push("more") == "");
  CHECK(met.finish() == "");
  StopStrings none({});
  CHECK(none.push("text") == "text");
}

TEST_CASE("generator: a token without an embedding is reported with its text and file") {
  auto json = nlohmann::json::parse(std::ifstream(folder() / "tokenizer.json"));
  auto model = pretrained::load_pretrained<pretrained::CausalLm>(folder());
  const std::int64_t count = model.model->vocabulary_size();
  json["added_tokens"].push_back({{"id", count},
                                  {"content", "<picture>"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", true}});
  test::KernelStore store;
  Generator generator(std::move(model), Tokenizer::parse(json.dump(), "pictures/tokenizer.json"), {.cache = &store});
  CHECK_THROWS_WITH(
      generator.generate("see <picture>", greedy_for(1)),
      Catch::Contains(fmt::format("pictures/tokenizer.json: the text has token {} ('<picture>'), and the model has "
                                  "embeddings of {} tokens",
                                  count, count)) &&
          Catch::Contains("[tokenizer_range]"));
  CHECK_NOTHROW(generator.generate("see", greedy_for(1)));
}
