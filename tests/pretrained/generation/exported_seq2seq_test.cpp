#include "models/generation/exported/exported_seq2seq.h"

#include <catch2/catch.hpp>
#include <limits>

#include "ir/tensor/text/printer.h"
#include "models/generation/generator.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "tests/pretrained/generation/exported_cases.h"
#include "tests/runtime/files/files_scratch.h"
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

/// T5 with one decoder that has a branch, and BART with two decoders and 32 positions.
ExportedSeq2Seq seq2seq(const std::string& model, const SequenceModelOptions& options = with_chunk(512)) {
  const std::optional<ExportedFiles> files = find_exported(exported_file(model, ""));
  REQUIRE(files);
  if (model == "bart") return {*files, {.start = 2, .padding = 1}, 32, options};
  return {*files, {}, std::numeric_limits<std::int64_t>::max(), options};
}

void copy_model(const std::string& model, const test::ScratchFolder& folder,
                std::initializer_list<const char*> names) {
  for (const char* name : names) std::filesystem::copy_file(exported_file(model, name), folder / name);
}

}  // namespace

TEST_CASE("exported seq2seq: tokens are those of transformers, for prompts alone and in a batch") {
  for (const std::string name : {"t5", "bart"}) {
    INFO(name);
    const test::ExportedCases known = exported_cases(name);
    ExportedSeq2Seq model = seq2seq(name);
    CHECK(model.vocabulary_size() == 24);
    CHECK(model.opening(known.prompts[0]) == Ids{name == "bart" ? 2 : 0});
    for (std::size_t i = 0; i < known.prompts.size(); ++i)
      CHECK(generated(model, {known.prompts[i]}, 12)[0] == known.texts[i]);
    // The shorter prompts are padded on the right.
    CHECK(generated(model, known.prompts, 12) == known.texts);
    CHECK(generated(model, {known.prompts[1]}, 12)[0] == known.texts[1]);
  }
}

TEST_CASE("exported seq2seq: beams are those of transformers") {
  for (const std::string name : {"t5", "bart"}) {
    INFO(name);
    const test::ExportedCases known = exported_cases(name);
    const test::ExportedBeams expected = test::exported_beams(name);
    ExportedSeq2Seq model = seq2seq(name);
    for (std::size_t i = 0; i < known.prompts.size(); ++i) {
      const std::vector<Beam> found = model.beams(known.prompts[i], expected.options);
      REQUIRE(found.size() == expected.ids[i].size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        CHECK(Ids(found[k].tokens.begin() + 1, found[k].tokens.end()) == expected.ids[i][k]);
        CHECK(found[k].score == Approx(expected.scores[i][k]).margin(2e-5));
      }
    }
    // One beam takes the most likely tokens. A search ends the sequences before, and others start after it.
    const std::vector<Beam> one = model.beams(known.prompts[0], {.width = 1, .longest = 12});
    CHECK(Ids(one[0].tokens.begin() + 1, one[0].tokens.end()) == known.texts[0]);
    CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
    CHECK(generated(model, known.prompts, 12) == known.texts);
  }
}

TEST_CASE("exported seq2seq: files with a fixed batch take that many sequences") {
  const test::ScratchFolder folder;
  for (const char* name : {"encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"})
    test::fix_batch(exported_file("bart", name), folder / name);
  const test::ExportedCases known = exported_cases("bart");
  ExportedSeq2Seq model(*find_exported(folder.path()), {.start = 2, .padding = 1}, 32, with_chunk(512));
  CHECK(generated(model, {known.prompts[0]}, 12)[0] == known.texts[0]);
  std::string text;
  CHECK(error_label([&] { model.start(known.prompts); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("encoder_model.onnx: the input") && Contains("a fixed batch of 1, and there are 3"));
  CHECK(error_label([&] { model.beams(known.prompts[0], {.width = 2}); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("decoder_with_past_model.onnx: the input") && Contains("and there are 2 sequences"));
}

TEST_CASE("exported seq2seq: keys and values are states, and those of new tokens are written in place") {
  const Dim B{"B"}, S{"S"}, past{"past"};
  importing::ImportOptions options;
  options.shapes = {{"input_ids", {B, 1}}, {"encoder_attention_mask", {B, S}}};
  for (const std::string part : {"key", "value"}) {
    const std::string start = "past_key_values.0.";
    options.shapes[start + "decoder." + part] = {B, 4, past, 4};
    options.caches[start + "decoder." + part] = {"present.0.decoder." + part};
    options.shapes[start + "encoder." + part] = {B, 4, S, 4};
    options.states.insert(start + "encoder." + part);
  }
  const std::filesystem::path file = exported_file("bart", "decoder_with_past_model.onnx");
  const ir::Graph graph = ir::dce(importing::import_graph(file, options).graph.finish());
  CHECK_THAT(ir::print(graph), Contains("state %past_key_values.0.decoder.key_cache: f32[B, 4, capacity, 4]") &&
                                   Contains("state %past_key_values.0.encoder.value: f32[B, 4, S, 4]"));
  CHECK(test::most_readers(graph) == 1);
  options.states.insert("past_key_values.7.encoder.key");
  CHECK(error_label([&] { importing::import_graph(file, options); }) == "argument_unknown");
  options = {};
  options.states.insert("x");
  CHECK(error_label([&] { importing::import_graph(exported_file("pt2/mlp", "model.pt2"), options); }) ==
        "import_unsupported");
}

TEST_CASE("exported seq2seq: a directory with its tokenizer generates text") {
  const test::ScratchFolder folder;
  copy_model("t5", folder, {"encoder_model.onnx", "decoder_model_merged.onnx", "config.json"});
  test::spit(folder / "tokenizer.json", test::word_tokenizer(23));
  Generator generator = Generator::load(folder.path(), with_chunk(512));
  const test::ExportedCases known = exported_cases("t5");
  GenerationOptions options;
  options.max_new_tokens = 12;
  const std::string prompt = test::words_of<std::int64_t>(known.prompts[0]);
  std::string text;
  for (const std::string& piece : generator.generate(prompt, options)) text += piece;
  CHECK_THAT(text, Contains(test::words_of<std::int64_t>(known.texts[0])));
}

TEST_CASE("exported seq2seq: the positions of the model limit a text") {
  ExportedSeq2Seq model = seq2seq("bart");
  model.start(std::vector<Ids>{{3, 4}});
  for (int i = 1; i < 32; ++i) model.step(Ids{5});
  CHECK(error_label([&] { model.step(Ids{5}); }) == "generation_length");
}

TEST_CASE("exported seq2seq: missing files, other inputs and options are errors") {
  const test::ScratchFolder folder;
  std::string text;
  copy_model("bart", folder, {"encoder_model.onnx", "decoder_with_past_model.onnx", "config.json"});
  CHECK(error_label([&] { (void)Generator::load(folder.path()); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("no decoder with a cache") && Contains("decoder_model.onnx"));
  const std::filesystem::path encoder = exported_file("bart", "encoder_model.onnx"),
                              first = exported_file("bart", "decoder_model.onnx"),
                              step = exported_file("bart", "decoder_with_past_model.onnx");
  const auto label = [&](const ExportedFiles& files, const SequenceModelOptions& options = with_chunk(512)) {
    return error_label([&] { ExportedSeq2Seq(files, {}, 32, options); }, &text);
  };
  CHECK(label({step, first, first}) == "exported_inputs");
  CHECK_THAT(text, Contains("decoder_model.onnx: the input 'encoder_hidden_states' is not that of an encoder"));
  CHECK(label({first, encoder, first}) == "exported_inputs");
  CHECK_THAT(text, Contains("decoder_model.onnx has no input input_ids, past_key_values.*.decoder.*"));
  CHECK(label({step, encoder, step}) == "exported_inputs");
  CHECK_THAT(text, Contains("has no output 'present.0.encoder.key'"));
  CHECK(label({exported_file("decoder", "model.onnx"), encoder, first}) == "exported_inputs");
  CHECK_THAT(text, Contains("the input 'attention_mask' is not that of a decoder with an encoder"));
  CHECK(label({step, encoder, first}, {.dtype = bf16}) == "exported_options");
  ExportedSeq2Seq model = seq2seq("bart");
  CHECK(error_label([&] { model.beams({1}, {.width = 2, .results = 3}); }) == "decoding_options");
  CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
  CHECK(error_label([&] { model.start({}); }) == "generation_prompt");
  CHECK(error_label([&] { model.start(std::vector<Ids>{{1, 99}}); }) == "index_range");
}
