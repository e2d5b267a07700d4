#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"
#include "models/generation/sequence_model.h"
#include "runtime/files/file_io.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

/// Models for generation in ONNX files, which scripts of tests/import/data write.
namespace lathe::test {

using Ids = std::vector<std::int64_t>;

inline std::filesystem::path exported_file(const std::string& model, const std::string& name) {
  return test_data("import/data/" + model + "/" + name);
}

/// Prompts, and the tokens that ONNX Runtime chooses after each.
struct ExportedCases {
  std::vector<Ids> prompts, texts;
};
inline ExportedCases exported_cases(const std::string& model) {
  const auto json = nlohmann::json::parse(std::ifstream(exported_file(model, "prompts.json")));
  return {json.at("prompts").get<std::vector<Ids>>(), json.at("texts").get<std::vector<Ids>>()};
}

/// A beam search of transformers, and what it finds after each prompt: the tokens of each beam, and their scores.
struct ExportedBeams {
  BeamOptions options;
  std::vector<std::vector<Ids>> ids;
  std::vector<std::vector<double>> scores;
};
inline ExportedBeams exported_beams(const std::string& model) {
  const auto json = nlohmann::json::parse(std::ifstream(exported_file(model, "prompts.json"))).at("beams");
  const std::int64_t width = json.at("width");
  return {
      .options = {.width = width, .results = width, .longest = json.at("longest"), .end_tokens = {json.at("end")}},
      .ids = json.at("ids").get<std::vector<std::vector<Ids>>>(),
      .scores = json.at("scores").get<std::vector<std::vector<double>>>()};
}

/// Writes a file whose dims "batch_size" are the number 1.
inline void fix_batch(const std::filesystem::path& from, const std::filesystem::path& to) {
  // A dim of 12 bytes: its name becomes a number, in a varint of 9 bytes, and an empty description.
  const std::string name = "\x12\nbatch_size";
  const std::string one = "\x08\x81" + std::string(7, '\x80') + std::string("\0\x1a\0", 3);
  std::string bytes = read_file(from, 1 << 20);
  REQUIRE(bytes.find(name) != std::string::npos);
  for (std::size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at))
    bytes.replace(at, name.size(), one);
  spit(to, bytes);
}

inline SequenceModelOptions with_chunk(std::int64_t chunk) {
  static KernelStore store;
  return {.chunk = chunk, .threads = 1, .cache = &store};
}

inline std::int64_t largest(const HostTensor& logits, std::int64_t row) {
  std::int64_t best = 0;
  const std::int64_t width = logits.shape()[1];
  for (std::int64_t i = 1; i < width; ++i)
    if (logits.get(row * width + i) > logits.get(row * width + best)) best = i;
  return best;
}

/// Returns the most likely tokens after each prompt.
inline std::vector<Ids> generated(SequenceModel& model, const std::vector<Ids>& prompts, std::size_t count) {
  std::vector<Ids> texts(prompts.size());
  model.start(prompts);
  for (std::size_t step = 0; step < count; ++step) {
    Ids tokens;
    for (std::size_t b = 0; b < prompts.size(); ++b) {
      tokens.push_back(largest(model.logits(), static_cast<std::int64_t>(b)));
      texts[b].push_back(tokens.back());
    }
    if (step + 1 < count) model.step(tokens);
  }
  return texts;
}

/// Returns the largest number of nodes that read a state of a cache. If only the update reads it, its rows are
/// written in place.
inline std::size_t most_readers(const ir::Graph& graph) {
  std::size_t most = 0;
  for (const ir::ValueId id : graph.arguments()) {
    if (graph[id].op->name.value != "state" || !graph[id].name.ends_with("_cache")) continue;
    std::size_t readers = 0;
    for (const ir::Node& node : graph.nodes)
      for (const ir::ValueId operand : node.operands) readers += operand == id ? 1 : 0;
    most = std::max(most, readers);
  }
  return most;
}

}  // namespace lathe::test
