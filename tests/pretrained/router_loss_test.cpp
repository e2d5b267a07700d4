#include <cmath>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "frontend/grad.h"
#include "models/pretrained/token_loss.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/cases.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

/// Mixtral's output_router_logits: the loss that spreads tokens evenly over experts.
using namespace lathe;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Mixtral {
  Mixtral() : loaded(load()) {}
  pretrained::Pretrained load() const {
    fs::copy(test::test_data("hf/models/mixtral/model"), path, fs::copy_options::recursive);
    json config = json::parse(test::slurp(path / "config.json"));
    config["output_router_logits"] = true;
    config["router_aux_loss_coef"] = 0.02;
    test::spit(path / "config.json", config.dump());
    return pretrained::load_pretrained<pretrained::CausalLm>(path);
  }

  test::ScratchFolder scratch;
  fs::path path = scratch / "model";
  SafetensorsFile inputs = SafetensorsFile::open(test::test_data("hf/models/mixtral/inputs.safetensors"));
  pretrained::Pretrained loaded;
};

// Computed by transformers 5.24.0, whose router loss is in f32.
constexpr double masked_loss = 6.471501350402832, plain_loss = 6.469992160797119;
constexpr double gate_gradients[] = {1.1041104350972653, 0.4266809969385211};  // with the mask

}  // namespace

TEST_CASE("router loss: the loss and gradients of Mixtral match transformers") {
  const Mixtral mixtral;
  for (const bool is_masked : {true, false}) {
    Graph g("loss");
    const Shape shape{Dim("B"), Dim("T")};
    pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, shape), .dtype = f64};
    if (is_masked) inputs.mask = g.input("attention_mask", i64, shape);
    const Tensor loss = mixtral.loaded.model->loss(inputs, g.input("labels", i64, shape));
    std::vector<Tensor> gates;
    for (const char* layer : {"0", "1"})
      gates.push_back(
          mixtral.loaded.model->parameter("model.layers." + std::string(layer) + ".block_sparse_moe.gate.weight")
              .in(g));
    const std::vector<Tensor> gradients = grad(loss, gates);
    g.output("loss", loss);
    for (std::size_t i = 0; i < 2; ++i) g.output("gate" + std::to_string(i), gradients[i]);
    Tensors values{{"input_ids", mixtral.inputs.tensor("input_ids")}, {"labels", mixtral.inputs.tensor("labels")}};
    if (is_masked) values.emplace("attention_mask", mixtral.inputs.tensor("attention_mask"));
    const Tensors got =
        compile(g.finish(), {.parameters = mixtral.loaded.weights, .cache = test::shared_kernels()}).run(values);
    CHECK(got.at("loss").get(0) == Approx(is_masked ? masked_loss : plain_loss).epsilon(1e-7));
    if (!is_masked) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const HostTensor& gradient = got.at("gate" + std::to_string(i));
      double squares = 0;
      for (std::int64_t k = 0; k < gradient.numel(); ++k) squares += gradient.get(k) * gradient.get(k);
      CHECK(std::sqrt(squares) == Approx(gate_gradients[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("router loss: fine-tuning ignores padding, and logits do not change") {
  const Mixtral mixtral;
  const Graph g = pretrained::token_loss(*mixtral.loaded.model, "loss", Dim("B"), Dim("T"), false, f64);
  const HostTensor labels = mixtral.inputs.tensor("labels");
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < labels.shape()[0]; ++b)
    for (std::int64_t t = 1; t < labels.shape()[1]; ++t) count += labels.get_int(b * labels.shape()[1] + t) != -100;
  HostTensor weight(f64, {});
  weight.set(0, 1.0 / static_cast<double>(count));
  Graph copy = g;
  const Tensors got =
      compile(copy.finish(), {.parameters = mixtral.loaded.weights, .cache = test::shared_kernels()})
          .run({{"input_ids", mixtral.inputs.tensor("input_ids")}, {"labels", labels}, {"weight", weight}});
  CHECK(got.at("loss").get(0) == Approx(masked_loss).epsilon(1e-7));

  const SafetensorsFile expected = SafetensorsFile::open(test::test_data("hf/models/mixtral/expected.safetensors"));
  Graph logits("logits");
  const Shape shape{Dim("B"), Dim("T")};
  logits.output("logits", mixtral.loaded.model->logits({.ids = logits.input("input_ids", i64, shape),
                                                        .mask = logits.input("attention_mask", i64, shape),
                                                        .dtype = f64}));
  const HostTensor mask = mixtral.inputs.tensor("attention_mask");
  const Tensors without =
      compile(logits.finish(), {.parameters = mixtral.loaded.weights, .cache = test::shared_kernels()})
          .run({{"input_ids", mixtral.inputs.tensor("input_ids")}, {"attention_mask", mask}});
  CHECK(test::error_of(without.at("logits"), expected.tensor("logits"), &mask) < 1e-10);
}
