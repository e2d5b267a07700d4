#include "models/generation/exported/exported_lm.h"

#include <catch2/catch.hpp>

#include "frontend/decode/decoding.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"
#include "models/generation/generator.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "runtime/files/file_io.h"
#include "tests/pretrained/generation/exported_cases.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"

using namespace lathe;
using Catch::Contains;
using test::error_label;
using test::exported_cases;
using test::exported_file;
using test::generated;
using test::Ids;
using test::test_data;
using test::with_chunk;
using Cases = test::ExportedCases;

namespace {

std::filesystem::path model_file() { return exported_file("decoder", "model.onnx"); }

}  // namespace

TEST_CASE("exported decoder: tokens are those of ONNX Runtime, for prompts alone and read in chunks") {
  for (const std::string decoder : {"decoder", "grouped_decoder"}) {
    INFO(decoder);
    const Cases known = exported_cases(decoder);
    for (const std::int64_t chunk : {512, 4}) {
      ExportedLm model(exported_file(decoder, "model.onnx"), 32, with_chunk(chunk));
      CHECK(model.vocabulary_size() == 23);
      for (std::size_t i = 0; i < known.prompts.size(); ++i)
        CHECK(generated(model, {known.prompts[i]}, 12)[0] == known.texts[i]);
    }
  }
}

TEST_CASE("exported decoder: prompts of different lengths in a batch have the tokens of each alone") {
  const Cases known = exported_cases("decoder");
  ExportedLm model(model_file(), 32, with_chunk(4));
  CHECK(generated(model, known.prompts, 12) == known.texts);
  // Batches of other sizes have other states.
  CHECK(generated(model, {known.prompts[1]}, 12)[0] == known.texts[1]);
  CHECK(generated(model, known.prompts, 12) == known.texts);
}

namespace {

/// The import of a decoder with two layers whose caches [B, 2, past, size] are states.
importing::ImportOptions with_states(std::int64_t size, bool has_positions) {
  importing::ImportOptions options;
  const Dim B{"B"}, T{"T"}, past{"past"};
  options.shapes["attention_mask"] = {B, past + T};
  options.shapes["input_ids"] = {B, T};
  if (has_positions) options.shapes["position_ids"] = {B, T};
  for (const char* part : {"0.key", "0.value", "1.key", "1.value"}) {
    options.shapes[std::string("past_key_values.") + part] = {B, 2, past, size};
    options.caches[std::string("past_key_values.") + part] = {std::string("present.") + part, 2};
  }
  return options;
}

}  // namespace

TEST_CASE("exported decoder: past keys and values are states that are written in place") {
  importing::ImportOptions options = with_states(4, true);
  const importing::ImportedGraph imported = importing::import_graph(model_file(), options);
  CHECK(imported.outputs.size() == 1);
  const ir::Graph graph = ir::dce(imported.graph.finish());
  CHECK_THAT(ir::print(graph), Contains("state %past_key_values.1.value_cache: f32[B, 2, capacity, 4]"));
  CHECK(test::most_readers(graph) == 1);
  options.caches["past_key_values.0.key"].output = "present.1.key";
  CHECK(error_label([&] { importing::import_graph(model_file(), options); }) == "import_unsupported");
  options.caches["past_key_values.0.key"].output = "present.7.key";
  CHECK(error_label([&] { importing::import_graph(model_file(), options); }) != "");
}

TEST_CASE("exported decoder: the caches of grouped attention are states, and shorter sequences are padded before") {
  const std::filesystem::path file = exported_file("grouped_decoder", "model.onnx");
  const importing::ImportedGraph imported = importing::import_graph(file, with_states(16, false));
  const ir::Graph graph = ir::dce(imported.graph.finish());
  CHECK(test::most_readers(graph) == 1);
  CHECK_THAT(ir::print(graph), Contains(" attention "));
  // Two sequences of one token each, one of which has a token before it: the other reads no row before its own.
  const auto last_logits = [&](const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& mask) {
    const auto length = std::ssize(ids);
    Tensors arguments = imported.parameters.values();
    arguments.set("input_ids", HostTensor::from_ints({1, length}, ids));
    arguments.set("attention_mask", HostTensor::from_ints({1, length}, mask));
    for (const ir::ValueId id : graph.arguments())
      if (graph[id].op->name.value == "state") arguments.set(graph[id].name, HostTensor(f32, {1, 2, 8, 16}));
    const HostTensor logits = ir::interpret(graph, arguments, {.dims = {{"past", 0}}}).at("logits");
    std::vector<double> last;
    for (std::int64_t i = 0; i < 23; ++i) last.push_back(logits.get((length - 1) * 23 + i));
    return last;
  };
  const std::vector<double> alone = last_logits({5, 3}, {1, 1}), padded = last_logits({7, 7, 5, 3}, {0, 0, 1, 1});
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(padded[i] == Approx(alone[i]).margin(1e-5));
  CHECK(last_logits({7, 7, 5, 3}, {1, 1, 1, 1}) != padded);
}

namespace {

/// Beam search that reads each beam as a prompt of its own in each step.
std::vector<Beam> beams_of_prompts(const std::filesystem::path& file, const Ids& prompt, const BeamOptions& options) {
  ExportedLm model(file, 32, with_chunk(512));
  return beam_search(prompt, options, [&](std::span<const Ids> sequences, std::span<const std::int64_t>) {
    const HostTensor& logits = model.start(sequences);
    std::vector<std::vector<double>> rows;
    for (std::int64_t i = 0; i < std::ssize(sequences); ++i) rows.push_back(logits_row(logits, i));
    return rows;
  });
}

void check_same(const std::vector<Beam>& found, const std::vector<Beam>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].tokens == expected[i].tokens);
    CHECK(found[i].score == Approx(expected[i].score).margin(1e-5));
  }
}

}  // namespace

TEST_CASE("exported decoder: beams are those of a search without a cache") {
  for (const std::string decoder : {"decoder", "grouped_decoder"}) {
    INFO(decoder);
    const std::filesystem::path file = exported_file(decoder, "model.onnx");
    const Cases known = exported_cases(decoder);
    ExportedLm model(file, 32, with_chunk(4));
    for (const BeamOptions& options : {BeamOptions{.width = 3, .results = 3, .longest = 9, .end_tokens = {4}},
                                       BeamOptions{.width = 2, .results = 2, .longest = 1}})
      for (const Ids& prompt : known.prompts)
        check_same(model.beams(prompt, options), beams_of_prompts(file, prompt, options));
    // A search with one beam takes the most likely tokens.
    Ids text = known.prompts[1];
    text.insert(text.end(), known.texts[1].begin(), known.texts[1].end());
    CHECK(model.beams(known.prompts[1], {.width = 1, .longest = 12})[0].tokens == text);
    // A search ends the sequences before, and others start after it.
    CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
    CHECK(generated(model, {known.prompts[0]}, 12)[0] == known.texts[0]);
  }
}

TEST_CASE("exported decoder: steps of a beam search reorder the cached rows, and write the new ones in place") {
  importing::ImportOptions options = with_states(4, true);
  options.parents = "parents";
  const ir::Graph graph = ir::dce(importing::import_graph(model_file(), options).graph.finish());
  CHECK_THAT(ir::print(graph), Contains("input %parents: i64[B]"));
  CHECK(test::most_readers(graph) == 1);
}

TEST_CASE("exported decoder: a file with a fixed batch takes that many sequences") {
  const test::ScratchFolder folder;
  std::string text;
  test::fix_batch(model_file(), folder / "decoder.onnx");
  const Cases known = exported_cases("decoder");
  ExportedLm model(folder / "decoder.onnx", 32, with_chunk(512));
  CHECK(generated(model, {known.prompts[0]}, 12)[0] == known.texts[0]);
  CHECK(error_label([&] { model.start(known.prompts); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("decoder.onnx: the input 'input_ids' has a fixed batch of 1, and there are 2 sequences"));
  CHECK(error_label([&] { model.beams(known.prompts[0], {.width = 3}); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("a fixed batch of 1, and there are 3 sequences") && Contains("without --beams"));
}

TEST_CASE("exported decoder: a decoder that reads an encoder is an error that names its input") {
  const test::ScratchFolder folder;
  std::string text;
  // The same file with another name of the same length for an input.
  std::string bytes = read_file(model_file(), 1 << 20);
  const std::string mask = "attention_mask", other = "encoder_states";
  for (std::size_t at = bytes.find(mask); at != std::string::npos; at = bytes.find(mask, at))
    bytes.replace(at, mask.size(), other);
  test::spit(folder / "decoder.onnx", bytes);
  CHECK(error_label([&] { ExportedLm(folder / "decoder.onnx", 32); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("the input 'encoder_states' is that of a decoder with cross attention"));
}

TEST_CASE("exported decoder: a directory with its tokenizer generates text") {
  const test::ScratchFolder folder;
  std::filesystem::copy_file(model_file(), folder / "model.onnx");
  std::filesystem::copy_file(test_data("import/data/decoder/config.json"), folder / "config.json");
  test::spit(folder / "tokenizer.json", test::word_tokenizer(22));
  Generator generator = Generator::load(folder.path(), with_chunk(512));
  const Cases known = exported_cases("decoder");
  GenerationOptions options;
  options.max_new_tokens = 12;
  std::string text;
  const std::string prompt = test::words_of<std::int64_t>(known.prompts[0]);
  for (const std::string& piece : generator.generate(prompt, options)) text += piece;
  CHECK_THAT(text, Contains(test::words_of<std::int64_t>(known.texts[0])));
  // The model has 32 positions.
  options.max_new_tokens = 100;
  std::size_t tokens = 0;
  for (const std::string& piece : generator.generate(prompt, options)) tokens += piece.empty() ? 0 : 1;
  CHECK(tokens == 32 - known.prompts[0].size());
  options.beams = {.width = 2, .results = 2};
  const BeamOptions search{.width = 2, .results = 2, .longest = 26};
  const std::vector<Beam> beams = beams_of_prompts(model_file(), known.prompts[0], search);
  const std::vector<Generator::BeamText> found = generator.beams(prompt, options);
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i].tokens == Ids(beams[i].tokens.begin() + 6, beams[i].tokens.end()));
  CHECK(error_label([&] { (void)Generator::load(folder.path(), {}, {}, folder.path()); }) == "exported_options");
}

TEST_CASE("exported decoder: other files and options are errors") {
  std::string text;
  CHECK(error_label([] { ExportedLm(model_file(), 32, {.dtype = bf16}); }) == "exported_options");
  CHECK(error_label([&] { ExportedLm(test_data("import/data/gpt2/model.onnx"), 32); }, &text) == "exported_inputs");
  CHECK_THAT(text, Contains("model.onnx"));
  ExportedLm model(model_file(), 32, with_chunk(4));
  CHECK(error_label([&] { model.beams({1}, {.width = 0}); }) == "decoding_options");
  CHECK(error_label([&] { model.beams(Ids(32, 1), {.width = 2, .longest = 2}); }) == "generation_length");
  CHECK(error_label([&] { model.step(Ids{1}); }) == "generation_batch");
  CHECK(error_label([&] { model.start(std::vector<Ids>{Ids(33, 1)}); }) == "generation_length");
  CHECK(error_label([&] { model.start(std::vector<Ids>{{1, 99}}); }) == "index_range");
  CHECK(error_label([&] { model.start({}); }) == "generation_prompt");
}
