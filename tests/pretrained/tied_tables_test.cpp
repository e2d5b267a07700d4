#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/tensor/text/printer.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "tests/pretrained/cases/cases.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

/// Output layers and tables in files whose configuration declares them tied.
using namespace lathe;
using nlohmann::json;
using test::test_data;
namespace fs = std::filesystem;

namespace {

/// A case's files, to be written with changed tensors and keys.
struct Files {
  explicit Files(const std::string& name) {
    const TensorFolder folder = TensorFolder::open(test_data("hf/models") / name / "model");
    for (const std::string& tensor : folder.names()) tensors.emplace(tensor, folder.file(tensor).tensor(tensor));
    config = json::parse(test::slurp(folder.path() / "config.json"));
  }
  void write(const fs::path& path) const {
    fs::remove_all(path);
    fs::create_directories(path);
    std::vector<PlacedTensor> placed;
    for (const auto& [name, value] : tensors) placed.push_back({"model.safetensors", view_of(name, value)});
    write_tensor_folder(path, placed);
    test::spit(path / "config.json", config.dump(1));
  }
  /// Adds a tensor of the same size with different values.
  void add_other(const std::string& name, const std::string& like) {
    const HostTensor& from = tensors.at(like);
    HostTensor made(from.dtype(), from.shape());
    for (std::int64_t i = 0; i < made.numel(); ++i) made.set(i, static_cast<double>((i * 7) % 13 - 6) / 8);
    tensors.insert_or_assign(name, std::move(made));
  }

  std::map<std::string, HostTensor> tensors;
  json config;
};

/// The graph and the weights that compute the logits; equal ones give equal bits.
struct Computed {
  std::string graph;
  std::map<std::string, std::vector<std::byte>> weights;
  std::string config;
  bool operator==(const Computed& other) const { return graph == other.graph && weights == other.weights; }
};

template <class Loaded>
Computed computed(const Loaded& loaded, const std::string& graph) {
  Computed result{graph, {}, loaded.config_text};
  for (const nn::Parameter& parameter : loaded.model->parameters()) {
    const HostTensor& value = loaded.weights.get(parameter.name());
    result.weights[parameter.name()].assign(value.data(), value.data() + value.bytes());
  }
  return result;
}

Computed causal(const fs::path& path) {
  const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(path);
  Graph g("logits");
  g.output("logits", loaded.model->logits({.ids = g.input("input_ids", i64, {Dim("B"), Dim("T")})}));
  return computed(loaded, ir::print(g.finish()));
}

Computed encoder(const fs::path& path) {
  const auto loaded = pretrained::load_pretrained<pretrained::Encoder>(path);
  Graph g("logits");
  g.output("logits", loaded.model->logits({.ids = g.input("input_ids", i64, {Dim("B"), Dim("T")})}));
  return computed(loaded, ir::print(g.finish()));
}

/// For a tied model: a head with other values is used as in an untied configuration, is saved as untied, and is read
/// again; a head with the same values is not a separate parameter; the shared table may have either name.
void check_tied(const std::string& name, const std::string& table, const std::string& head,
                Computed (*load)(const fs::path&), pretrained::ModelFiles (*files_of)(const fs::path&)) {
  INFO(name);
  const test::ScratchFolder scratch;
  const fs::path path = scratch / "model";
  Files files(name);
  files.config["tie_word_embeddings"] = true;
  files.tensors.erase(head);
  files.write(path);
  const Computed tied = load(path);
  CHECK(json::parse(tied.config).at("tie_word_embeddings") == true);

  files.tensors.insert_or_assign(head, files.tensors.at(table));
  files.write(path);
  CHECK(load(path) == tied);
  Files either = files;
  either.tensors.erase(table);
  either.write(path);
  CHECK(load(path) == tied);

  files.add_other(head, table);
  files.write(path);
  const Computed untied = load(path);
  CHECK(!(untied == tied));
  CHECK(json::parse(untied.config).at("tie_word_embeddings") == false);
  Files explicit_files = files;
  explicit_files.config["tie_word_embeddings"] = false;
  explicit_files.write(scratch / "explicit");
  CHECK(load(scratch / "explicit") == untied);

  pretrained::save(files_of(path), scratch / "saved");
  CHECK(load(scratch / "saved") == untied);
  CHECK(json::parse(test::slurp(scratch / "saved" / "config.json")).at("tie_word_embeddings") == false);
}

pretrained::ModelFiles causal_files(const fs::path& path) {
  return pretrained::load_pretrained<pretrained::CausalLm>(path);
}
pretrained::ModelFiles encoder_files(const fs::path& path) {
  return pretrained::load_pretrained<pretrained::Encoder>(path);
}

HostTensor t5_logits(const fs::path& path) {
  const auto loaded = pretrained::load_pretrained<pretrained::Seq2SeqLm>(path);
  Graph g("logits");
  const Shape shape{Dim("B"), Dim("T")};
  g.output("logits", loaded.model->logits({.ids = g.input("input_ids", i64, shape),
                                           .decoder_ids = g.input("decoder_input_ids", i64, {Dim("B"), Dim("S")}),
                                           .dtype = f64}));
  HostTensor ids(i64, {1, 4}), written(i64, {1, 3});
  for (int i = 0; i < 4; ++i) ids.set_int(i, 3 + 2 * i);
  for (int i = 0; i < 3; ++i) written.set_int(i, 5 * i);
  return compile(g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()})
      .run({{"input_ids", ids}, {"decoder_input_ids", written}})
      .at("logits");
}

}  // namespace

TEST_CASE("tied tables: a causal language model uses an output layer with different values") {
  const std::string llama = "model.embed_tokens.weight";
  for (const char* name : {"llama", "mistral", "qwen2", "qwen3", "mixtral", "phi3", "olmo2", "gemma2", "gemma3"})
    check_tied(name, llama, "lm_head.weight", causal, causal_files);
  check_tied("gpt_neox", "gpt_neox.embed_in.weight", "embed_out.weight", causal, causal_files);
  check_tied("gpt2", "transformer.wte.weight", "lm_head.weight", causal, causal_files);
}

TEST_CASE("tied tables: a masked language model uses an output layer with different values") {
  check_tied("bert", "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", encoder,
             encoder_files);
  check_tied("roberta", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight", encoder,
             encoder_files);
  check_tied("distilbert", "distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight", encoder,
             encoder_files);
}

TEST_CASE("tied tables: the bias of the output layer takes precedence over that of its parent") {
  const test::ScratchFolder scratch;
  for (const auto& [name, own, parent] : {std::tuple{"bert", "cls.predictions.decoder.bias", "cls.predictions.bias"},
                                          {"roberta", "lm_head.decoder.bias", "lm_head.bias"}})
    for (const bool is_tied : {true, false}) {
      INFO(name << " " << is_tied);
      Files files(name);
      const HostTensor bias = files.tensors.at(files.tensors.contains(own) ? own : parent);
      files.config["tie_word_embeddings"] = is_tied;
      const std::string prefix = std::string(name) == "bert" ? "cls.predictions" : "lm_head";
      if (!is_tied)
        files.add_other(prefix + ".decoder.weight", std::string(name) + ".embeddings.word_embeddings.weight");
      files.tensors.erase(parent);
      files.tensors.insert_or_assign(own, bias);
      files.write(scratch / "own");
      const Computed want = encoder(scratch / "own");
      files.add_other(parent, own);
      files.write(scratch / "both");
      CHECK(encoder(scratch / "both") == want);
      files.tensors.erase(own);
      files.tensors.insert_or_assign(parent, bias);
      files.write(scratch / "parent");
      CHECK(encoder(scratch / "parent") == want);
    }
}

TEST_CASE("tied tables: the T5 encoder, decoder and output layer each use their own table from the files") {
  const test::ScratchFolder scratch;
  const fs::path path = scratch / "model";
  Files plain("t5");
  for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"})
    plain.tensors.erase(name);
  plain.write(path);
  const HostTensor tied = t5_logits(path);
  for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
    INFO(name);
    Files files = plain;
    files.tensors.insert_or_assign(name, files.tensors.at("shared.weight"));
    files.write(path);
    CHECK(test::error_of(t5_logits(path), tied) == 0);
    Files alone = files;
    alone.tensors.erase("shared.weight");
    alone.write(path);
    CHECK(test::error_of(t5_logits(path), tied) == 0);

    files.add_other(name, "shared.weight");
    files.write(path);
    const HostTensor own = t5_logits(path);
    CHECK(test::error_of(own, tied) > 1e-3);
    pretrained::save(pretrained::load_pretrained<pretrained::Seq2SeqLm>(path), scratch / "saved");
    CHECK(test::error_of(t5_logits(scratch / "saved"), own) == 0);
    CHECK(test::slurp(scratch / "saved" / "config.json") == test::slurp(path / "config.json"));
  }
  // All three together: as if each table were replaced separately.
  Files files = plain;
  files.add_other("encoder.embed_tokens.weight", "shared.weight");
  files.tensors.insert_or_assign("decoder.embed_tokens.weight", files.tensors.at("encoder.embed_tokens.weight"));
  files.tensors.insert_or_assign("lm_head.weight", files.tensors.at("encoder.embed_tokens.weight"));
  files.write(path);
  const HostTensor all = t5_logits(path);
  Files exchanged = plain;
  exchanged.tensors.insert_or_assign("shared.weight", files.tensors.at("encoder.embed_tokens.weight"));
  exchanged.write(path);
  CHECK(test::error_of(t5_logits(path), all) == 0);
}
