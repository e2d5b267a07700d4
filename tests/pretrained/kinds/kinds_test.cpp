#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_attention.h"
#include "passes/machines/cpu_machine.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/model_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/graphs/source_lines.h"
#include "tests/support/kernels/kernel_store.h"

/// Directories of all kinds: supported and rejected values in config.json.
using namespace lathe;
using Catch::Matchers::Contains;
using test::HfCase;

namespace {

HfCase case_of(std::string_view name) {
  for (const char* task : {"masked-lm", "sentence-embedding", "seq2seq-lm", "image-classification"})
    for (HfCase& which : test::hf_cases(task))
      if (which.name == name) return std::move(which);
  FAIL("there is no case " << name);
  return {};
}

using Change = std::pair<std::string, std::string>;

/// Returns a copy of the case with a text in config.json replaced.
std::filesystem::path changed(const test::ScratchFolder& folder, std::string_view name, const Change& change) {
  const auto path = folder / "model";
  std::filesystem::remove_all(path);
  std::filesystem::copy(case_of(name).folder(), path, std::filesystem::copy_options::recursive);
  std::string text = test::slurp(path / "config.json");
  const std::size_t at = text.find(change.first);
  REQUIRE(at != std::string::npos);
  test::spit(path / "config.json", text.replace(at, change.first.size(), change.second));
  return path;
}

void load_any(std::string_view name, const std::filesystem::path& path) {
  if (name.starts_with("t5"))
    (void)pretrained::load_pretrained<pretrained::Seq2SeqLm>(path);
  else if (name == "vit")
    (void)pretrained::load_pretrained<pretrained::ImageModel>(path);
  else
    (void)pretrained::load_pretrained<pretrained::Encoder>(path);
}

/// Returns the logits of a case, computed with the changed configuration.
HostTensor logits(const std::filesystem::path& path, std::string_view name) {
  const auto loaded = pretrained::load_pretrained<pretrained::Encoder>(path);
  test::ModelGraph c(case_of(name));
  const Shape shape{Dim("B"), Dim("T")};
  c.g.output("logits", loaded.model->logits({.ids = c.take("input_ids", i64, shape),
                                             .mask = c.take("attention_mask", i64, shape),
                                             .dtype = f64}));
  return compile(c.g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()})
      .run(c.values)
      .at("logits");
}

}  // namespace

TEST_CASE("models of all kinds: invalid settings in config.json") {
  const test::ScratchFolder folder;
  const struct {
    std::string_view name;
    Change change;
    std::string_view label, text;
  } refused[] = {
      {"bert", {"\"gelu\"", "\"xielu\""}, "config_value", "config.json: hidden_act is \"xielu\""},
      {"bert", {"\"is_decoder\": false", "\"is_decoder\": true"}, "config_value", "is_decoder is true"},
      {"bert", {"BertForMaskedLM", "BertForTokenClassification"}, "config_value", "BertForTokenClassification"},
      {"bert",
       {"\"model_type\": \"bert\"", "\"model_type\": \"brt\""},
       "config_value",
       "Lathe does not know this family"},
      {"bert",
       {"\"num_attention_heads\": 4", "\"num_attention_heads\": 5"},
       "config_value",
       "num_attention_heads is 5"},
      {"bert", {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"}, "model_missing", "bert.encoder.layer.2."},
      {"bert", {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"}, "model_left_over", "bert.encoder.layer.1."},
      {"bert", {"\"intermediate_size\": 60", "\"intermediate_size\": 61"}, "model_shape", "intermediate.dense"},
      {"bert",
       {"\"bos_token_id\"", "\"position_embedding_type\": \"relative_key\", \"bos_token_id\""},
       "config_value",
       "position_embedding_type is \"relative_key\""},
      {"roberta", {"\"pad_token_id\": 1", "\"pad_token_id\": 26"}, "config_value", "pad_token_id is 26"},
      {"distilbert", {"\"n_heads\": 4", "\"n_heads\": 0"}, "config_value", "n_heads is 0"},
      {"t5",
       {"\"feed_forward_proj\": \"relu\"", "\"feed_forward_proj\": \"gated-gelu\""},
       "config_value",
       "feed_forward_proj is \"gated-gelu\""},
      {"t5_v11", {"\"gated-gelu\"", "\"gated-other\""}, "config_value", "feed_forward_proj is \"gated-other\""},
      {"t5",
       {"\"relative_attention_num_buckets\": 8", "\"relative_attention_num_buckets\": 3"},
       "config_value",
       "relative_attention_num_buckets is 3"},
      {"t5",
       {"\"relative_attention_max_distance\": 20", "\"relative_attention_max_distance\": 4"},
       "config_value",
       "relative_attention_max_distance is 4"},
      {"t5", {"\"num_decoder_layers\": 2", "\"num_decoder_layers\": 1"}, "model_left_over", "decoder.block.1."},
      {"t5", {"\"num_decoder_layers\": 2", "\"num_decoder_layers\": 3"}, "model_missing", "decoder.block.2."},
      {"t5", {"T5ForConditionalGeneration", "T5EncoderModel"}, "config_value", "T5EncoderModel"},
      {"t5_v11", {"\"tie_word_embeddings\": false", "\"tie_word_embeddings\": \"no\""}, "config_type", "\"no\""},
      {"vit", {"\"image_size\": 20", "\"image_size\": [20, 20, 3]"}, "config_value", "image_size is [20,20,3]"},
      {"vit", {"\"image_size\": 20", "\"image_size\": 21"}, "config_value", "image_size is 21"},
      {"vit", {"\"image_size\": 20", "\"image_size\": [20, 25]"}, "model_shape", "position_embeddings"},
      {"vit", {"\"qkv_bias\": true", "\"qkv_bias\": false"}, "model_left_over", "attention.query.bias"},
      {"vit",
       {"ViTForImageClassification", "ViTForMaskedImageModeling"},
       "config_value",
       "ViTForMaskedImageModeling"},
  };
  for (const auto& row : refused) {
    const auto path = changed(folder, row.name, row.change);
    const test::Failure failure = test::failure_of([&] { load_any(row.name, path); });
    INFO(row.name << ": " << row.change.second << "\n" << failure.text);
    CHECK(failure.label == row.label);
    CHECK_THAT(failure.text, Contains(std::string(row.text)));
  }
}

TEST_CASE("models of all kinds: optional and alternative settings in config.json") {
  const test::ScratchFolder folder;
  const HostTensor want = case_of("distilbert").expected().tensor("logits");
  const HostTensor mask = case_of("distilbert").inputs().tensor("attention_mask");
  for (const Change& change : {Change{"\"dim\"", "\"hidden_size\""}, Change{"\"n_heads\"", "\"num_attention_heads\""},
                               Change{"\"activation\": \"gelu\",", ""}, Change{"\"dtype\"", "\"torch_dtype\""}}) {
    INFO(change.first);
    CHECK(test::error_of(logits(changed(folder, "distilbert", change), "distilbert"), want, &mask) < 1e-10);
  }
  const HostTensor roberta = case_of("roberta").expected().tensor("logits");
  const HostTensor roberta_mask = case_of("roberta").inputs().tensor("attention_mask");
  const auto xlm = changed(folder, "roberta", {"\"model_type\": \"roberta\"", "\"model_type\": \"xlm-roberta\""});
  CHECK(test::error_of(logits(xlm, "roberta"), roberta, &roberta_mask) < 1e-10);
  // Patches of 20 by 20 pixels: the same number of positions, in one row.
  const auto vit = pretrained::load_pretrained<pretrained::ImageModel>(
      changed(folder, "vit", {"\"image_size\": 20", "\"image_size\": [40, 10]"}));
  CHECK(vit.model->image_shape(2).to_string() == "[2, channels=3, height=40, width=10]");
}

TEST_CASE("models of all kinds: a base model has a pooler if its files have one, and no output layer") {
  const test::ScratchFolder folder;
  const auto base =
      pretrained::load_pretrained<pretrained::Encoder>(changed(folder, "bert", {"BertForMaskedLM", "BertModel"}));
  CHECK((!base.model->has_head() && !base.model->has_pooler()));
  const auto embed = pretrained::load_pretrained<pretrained::Encoder>(case_of("bert_embed").folder());
  CHECK((!embed.model->has_head() && embed.model->has_pooler()));
  CHECK(embed.model->longest() == 26);
  CHECK(pretrained::load_pretrained<pretrained::Encoder>(case_of("roberta").folder()).model->longest() == 24);
  Graph g{"parts"};
  const Tensor ids = g.input("ids", i64, {Dim("B"), Dim("T")});
  CHECK(test::failure_of([&] { (void)base.model->logits({.ids = ids}); }).label == "encoder_part");
  CHECK(test::failure_of([&] { (void)base.model->pool(base.model->hidden_states({.ids = ids}).back()); }).label ==
        "encoder_part");
  const auto distilbert = pretrained::load_pretrained<pretrained::Encoder>(case_of("distilbert").folder());
  CHECK(test::failure_of([&] { (void)distilbert.model->logits({.ids = ids, .types = ids}); }).label ==
        "encoder_part");
  const auto vit = pretrained::load_pretrained<pretrained::ImageModel>(case_of("vit").folder());
  const Tensor images = g.input("images", f32, {Dim("B"), 3, 20, 25});
  CHECK(test::failure_of([&] { (void)vit.model->logits(images); }).label == "image_shape");
  CHECK(test::failure_of([&] { (void)vit.model->pool(images); }).label == "encoder_part");
}

TEST_CASE("models of all kinds: every value has a line, and every attention can be fused, forward and backward") {
  const auto check = [](Graph& g, const Tensor& loss, const nn::Module& module, int attentions) {
    const std::vector<nn::Parameter> parameters = module.parameters();
    std::vector<Tensor> wanted;
    for (const nn::Parameter& parameter : parameters) wanted.push_back(parameter.in(g));
    for (const Tensor& gradient : grad(loss, wanted))
      g.output("grad_" + std::to_string(g.ir().outputs.size()), gradient);
    const ir::Graph graph = g.finish();
    CHECK(test::without_lines(graph) == std::vector<std::string>{});
    const ir::Graph primitives = ir::run_pipeline(graph, ir::default_pipeline()).graph;
    Machine machine = cpu_machine(unnamed_cpu());
    machine.fusion.attention_costs = {};
    const std::string told = explain_attention(lower_graph(primitives, machine), machine.info);
    INFO(told);
    const auto count = [&](std::string_view what) {
      int found = 0;
      for (std::size_t at = told.find(what); at != std::string::npos; at = told.find(what, at + 1)) ++found;
      return found;
    };
    CHECK(count(": fused") == 2 * attentions);
    CHECK(count("not fused") == 1);  // the softmax of the loss, which is not attention
    CHECK(count("is not an attention") == 1);
  };
  const Dim B{"B"}, S{"S"}, T{"T"};
  {
    const auto bert = pretrained::load_pretrained<pretrained::Encoder>(case_of("bert").folder());
    Graph g{"bert"};
    const pretrained::EncoderInputs inputs{.ids = g.input("ids", i64, {B, T}), .mask = g.input("mask", i64, {B, T})};
    check(g, bert.model->loss(inputs, g.input("labels", i64, {B, T})), *bert.model, 2);
  }
  {
    const auto t5 = pretrained::load_pretrained<pretrained::Seq2SeqLm>(case_of("t5").folder());
    Graph g{"t5"};
    const pretrained::Seq2SeqInputs inputs{.ids = g.input("ids", i64, {B, S}),
                                           .decoder_ids = g.input("decoder_ids", i64, {B, T}),
                                           .mask = g.input("mask", i64, {B, S})};
    check(g, t5.model->loss(inputs, g.input("labels", i64, {B, T})), *t5.model, 6);
  }
  {
    const auto vit = pretrained::load_pretrained<pretrained::ImageModel>(case_of("vit").folder());
    Graph g{"vit"};
    const Tensor images = g.input("images", f32, vit.model->image_shape(B));
    check(g, vit.model->loss(images, g.input("labels", i64, {B})), *vit.model, 2);
  }
}
