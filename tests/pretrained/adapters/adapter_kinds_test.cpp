#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/grad.h"
#include "frontend/initial_values.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "frontend/train/step.h"
#include "models/pretrained/encoders/sentence_encoder.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "tests/pretrained/cases/model_case.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using test::HfCase;
using test::ModelGraph;

/// Adapters on models that are not decoders: the cases of tests/pretrained/adapter_cases.py.
namespace {

/// An adapter from PEFT, and the case of its base model.
struct AdapterCase {
  std::string name;
  HfCase base;

  std::filesystem::path folder() const { return test::test_data("hf/adapters") / name / "adapter"; }
  SafetensorsFile expected() const {
    return SafetensorsFile::open(test::test_data("hf/adapters") / name / "expected.safetensors");
  }
};

AdapterCase adapter_case(const std::string& name, std::string_view task, const std::string& base) {
  for (const HfCase& which : test::hf_cases(task))
    if (which.name == base) return {name, which};
  throw InternalError("no case " + base);
}

/// Builds the outputs of one kind of model: sets `logits` among the outputs, and the loss.
void build(const pretrained::Seq2SeqLm& model, ModelGraph& c, DType dtype) {
  const Dim B{"B"}, S{"S"}, T{"T"};
  const pretrained::Seq2SeqInputs inputs{.ids = c.take("input_ids", i64, {B, S}),
                                         .decoder_ids = c.take("decoder_input_ids", i64, {B, T}),
                                         .mask = c.take_if("attention_mask", i64, {B, S}),
                                         .dtype = dtype};
  c.outputs.emplace("logits", model.logits(inputs));
  c.loss = model.loss(inputs, c.take("labels", i64, {B, T}));
}

void build(const pretrained::SentenceEncoder& model, ModelGraph& c, DType dtype) {
  const Shape shape{6, Dim("T")};
  const pretrained::EncoderInputs inputs{
      .ids = c.take("input_ids", i64, shape), .mask = c.take("attention_mask", i64, shape), .dtype = dtype};
  const Tensor e = model.embed(inputs);
  c.outputs.emplace("logits", e);
  c.loss = cross_entropy(matmul(e.slice(0, 0, 3), e.slice(0, 3, 6).transpose(0, 1)) * 20, c.g.arange(3, i64));
}

/// Returns a model with its adapter, both stored in the compute dtype.
template <class Model>
auto adapted(const AdapterCase& which, DType dtype) {
  auto on = pretrained::load_adapted<Model>({which.base.folder(), which.folder()});
  for (const nn::Parameter& parameter : on.model.model->parameters()) {
    on.model.weights.set(parameter.name(), on.model.weights.get(parameter.name()).cast(dtype));
    parameter.store_as(dtype);
  }
  return on;
}

template <class Model>
void check_values(const AdapterCase& which, DType dtype, ObjectStore& store) {
  const auto on = adapted<Model>(which, dtype);
  ModelGraph c(which.base);
  build(*on.model.model, c, dtype);
  c.g.output("logits", c.outputs.at("logits"));
  c.g.output("loss", c.loss);
  std::vector<nn::Parameter> trained = on.lora->parameters();
  // Sentence embeddings do not depend on the pooler.
  std::erase_if(trained, [](const nn::Parameter& each) { return each.name().find(".pooler.") != std::string::npos; });
  std::vector<Tensor> wanted;
  for (const nn::Parameter& parameter : trained) wanted.push_back(parameter.in(c.g));
  const std::vector<Tensor> gradients = grad(c.loss, wanted);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const std::string &name = trained[i].name(), &root = on.lora->root;
    c.g.output("grad.base_model.model." + (name.starts_with(root) ? name.substr(root.size()) : name), gradients[i]);
  }
  const Tensors got = compile(c.g.finish(), {.parameters = on.model.weights, .cache = &store}).run(c.values);
  const SafetensorsFile expected = which.expected();
  const test::Tolerance tolerance = test::tolerance_of(dtype);
  CHECK(test::error_of(got.at("logits"), expected.tensor("logits")) <= tolerance.forward);
  CHECK(test::error_of(got.at("loss"), expected.tensor("loss")) <= tolerance.loss);
  int compared = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("grad.")) continue;
    INFO(name);
    CHECK(test::error_of(got.at(name), expected.tensor(name)) <= tolerance.grad);
    ++compared;
  }
  CHECK(compared >= 4);
}

/// Merges the adapter, writes the model, and reads it again as its own directory, whose files are f32.
template <class Model>
void check_merging(const AdapterCase& which, DType dtype, ObjectStore& store) {
  const test::ScratchFolder folder;
  auto on = pretrained::load_adapted<Model>({which.base.folder(), which.folder()});
  pretrained::merge_lora(*on.lora, on.model, {.cache = &store});
  pretrained::save(on.model, folder / "merged");
  const auto merged = pretrained::load_pretrained<Model>(folder / "merged");
  ModelGraph c(which.base);
  build(*merged.model, c, dtype);
  c.g.output("logits", c.outputs.at("logits"));
  const Tensors got = compile(c.g.finish(), {.parameters = merged.weights, .cache = &store}).run(c.values);
  CHECK(test::error_of(got.at("logits"), which.expected().tensor("merged_logits")) <=
        test::tolerance_of(f32).forward);
}

template <class Model>
void check_training(const AdapterCase& which, DType dtype, ObjectStore& store) {
  auto on = adapted<Model>(which, dtype);
  const test::HfTraining t = test::hf_training();
  ModelGraph c(which.base);
  build(*on.model.model, c, dtype);
  const ir::Graph step = training_step(
      c.g, c.loss,
      AdamW{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .eps = t.eps, .weight_decay = t.weight_decay},
      {.trainable = nn::trainable(*on.model.model)});
  Executable exe = compile(step, {.parameters = on.model.weights, .cache = &store});
  for (auto& [name, value] : initial_values(step, {}, 1))
    if (name.starts_with("optimizer.")) on.model.weights.set(name, std::move(value));
  const HostTensor want = which.expected().tensor("train_loss");
  HostTensor losses(f64, want.shape());
  for (std::int64_t i = 0; i <= t.steps; ++i) losses.set(i, exe.run(c.values).at("loss").get(0));
  CHECK(want.numel() == t.steps + 1);
  CHECK(test::error_of(losses, want) <= test::tolerance_of(dtype).train);
}

template <class Model>
void check_adapter(const AdapterCase& which, DType dtype) {
  INFO(which.name << " " << name(dtype));
  test::KernelStore store;
  check_values<Model>(which, dtype, store);
  check_merging<Model>(which, dtype, store);
  check_training<Model>(which, dtype, store);
}

/// Writes PEFT's files again.
template <class Model>
void check_files(const AdapterCase& which) {
  const test::ScratchFolder folder;
  const auto on = pretrained::load_adapted<Model>({which.base.folder(), which.folder()});
  pretrained::save_lora(*on.lora, on.model.weights, folder / "adapter");
  const auto was = SafetensorsFile::open(which.folder() / "adapter_model.safetensors");
  const auto is = SafetensorsFile::open(folder / "adapter" / "adapter_model.safetensors");
  CHECK(is.names().size() == was.names().size());
  for (const std::string& name : was.names()) {
    INFO(name);
    REQUIRE(is.contains(name));
    CHECK(test::error_of(is.tensor(name), was.tensor(name)) == 0);
  }
  const auto json_of = [](const std::filesystem::path& path) { return nlohmann::json::parse(std::ifstream(path)); };
  const nlohmann::json before = json_of(which.folder() / "adapter_config.json");
  const nlohmann::json after = json_of(folder / "adapter" / "adapter_config.json");
  for (const auto& [key, value] : after.items()) {
    INFO(key);
    CHECK(value == before.at(key));
  }
}

}  // namespace

TEST_CASE("PEFT adapters on an encoder-decoder and on a sentence encoder") {
  const AdapterCase on_t5 = adapter_case("t5_lora", "seq2seq-lm", "t5");
  const AdapterCase on_bert = adapter_case("bert_embed_lora", "sentence-embedding", "bert_embed");
  for (const DType dtype : {f64, f32}) {
    check_adapter<pretrained::Seq2SeqLm>(on_t5, dtype);
    check_adapter<pretrained::SentenceEncoder>(on_bert, dtype);
  }
  check_files<pretrained::Seq2SeqLm>(on_t5);
  check_files<pretrained::SentenceEncoder>(on_bert);
}
