#include "models/generation/exported/static_cache_lm.h"

#include <catch2/catch.hpp>

#include "models/generation/generator.h"
#include "tests/pretrained/generation/exported_cases.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using Catch::Contains;
using test::error_label;
using test::exported_cases;
using test::exported_file;
using test::generated;
using test::Ids;
using test::with_chunk;

namespace {

const std::vector<std::string> decoders{"pt2/static_decoder", "pt2/static_decoder_core"};

std::filesystem::path model_file(const std::string& decoder) { return exported_file(decoder, "model.pt2"); }

}  // namespace

TEST_CASE("decoder with a static cache: tokens are those of PyTorch without a cache, whatever ran before") {
  for (const std::string& decoder : decoders) {
    INFO(decoder);
    const test::ExportedCases known = exported_cases(decoder);
    for (const std::int64_t chunk : {512, 4}) {
      StaticCacheLm model(model_file(decoder), 1000, with_chunk(chunk));
      CHECK(model.vocabulary_size() == 23);
      CHECK(model.most_positions() == 24);
      for (std::size_t i = 0; i < known.prompts.size(); ++i)
        CHECK(generated(model, {known.prompts[i]}, 12)[0] == known.texts[i]);
      CHECK(generated(model, {known.prompts[0]}, 12)[0] == known.texts[0]);
    }
  }
}

TEST_CASE("decoder with a static cache: a directory with its tokenizer generates text") {
  const test::ScratchFolder folder;
  std::filesystem::copy_file(model_file(decoders[0]), folder / "model.pt2");
  test::spit(folder / "config.json", R"({"model_type": "mine", "max_position_embeddings": 20})");
  test::spit(folder / "tokenizer.json", test::word_tokenizer(22));
  Generator generator = Generator::load(folder.path(), with_chunk(512));
  const test::ExportedCases known = exported_cases(decoders[0]);
  GenerationOptions options;
  options.max_new_tokens = 12;
  std::string text;
  const std::string prompt = test::words_of<std::int64_t>(known.prompts[0]);
  for (const std::string& piece : generator.generate(prompt, options)) text += piece;
  CHECK_THAT(text, Contains(test::words_of<std::int64_t>(known.texts[0])));
  // config.json gives 20 positions.
  options.max_new_tokens = 100;
  std::size_t tokens = 0;
  for (const std::string& piece : generator.generate(prompt, options)) tokens += piece.empty() ? 0 : 1;
  CHECK(tokens == 20 - known.prompts[0].size());
  CHECK(error_label([&] { (void)Generator::load(folder.path(), {}, {}, folder.path()); }) == "exported_options");
}

TEST_CASE("decoder with a static cache: a search with one beam takes the most likely tokens") {
  const test::ExportedCases known = exported_cases(decoders[0]);
  StaticCacheLm model(model_file(decoders[0]), 24, with_chunk(512));
  Ids text = known.prompts[1];
  text.insert(text.end(), known.texts[1].begin(), known.texts[1].end());
  CHECK(model.beams(known.prompts[1], {.width = 1, .longest = 12})[0].tokens == text);
  CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
  std::string message;
  CHECK(error_label([&] { model.beams({1}, {.width = 3}); }, &message) == "exported_inputs");
  CHECK_THAT(message, Contains("beam search with 3 beams of a static cache") && Contains("leave out --beams"));
}

TEST_CASE("decoder with a static cache: other files, prompts and options are errors") {
  std::string text;
  const std::filesystem::path file = model_file(decoders[0]);
  CHECK(error_label([&] { StaticCacheLm(file, 24, {.dtype = bf16}); }) == "exported_options");
  CHECK(error_label([&] { StaticCacheLm(exported_file("pt2/gpt", "model.pt2"), 24); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("model.pt2: the input 'input_ids' [") && Contains("with a fixed batch"));
  CHECK(error_label([&] { StaticCacheLm(exported_file("pt2/mlp", "model.pt2"), 24); }, &text) == "exported_inputs");
  StaticCacheLm model(file, 24, with_chunk(4));
  CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
  CHECK(error_label([&] { model.start({}); }) == "generation_prompt");
  CHECK(error_label([&] { model.start(std::vector<Ids>{{1}, {2}}); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("model.pt2: the cache has a batch of 1, and there are 2 sequences"));
  CHECK(error_label([&] { model.start(std::vector<Ids>{Ids(25, 1)}); }) == "generation_length");
  CHECK(error_label([&] { model.start(std::vector<Ids>{{1, 99}}); }) == "index_range");
  model.start(std::vector<Ids>{Ids(24, 1)});
  CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_length");
}
