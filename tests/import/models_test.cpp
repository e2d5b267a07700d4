#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/ops/derived_ops.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "tests/import/support/model_case.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

std::filesystem::path model_folder(const std::string& name) { return test_data("import/data/" + name); }

/// One import serves both sizes.
void check_model(const std::string& name, bool is_compiled) {
  const importing::ImportedGraph imported = importing::import_graph(model_folder(name) / "model.onnx");
  const std::vector<ModelRun> runs = model_runs(model_folder(name));
  CHECK(runs.size() == 2);
  for (const ModelRun& run : runs) {
    INFO(name);
    const auto fault = difference(run_imported(imported, run.inputs, is_compiled), run.outputs, {1e-5, 1e-5});
    CHECK(fault.value_or("") == "");
  }
}

}  // namespace

TEST_CASE("models: interpreted graphs give the numbers of ONNX Runtime at two sizes") {
  for (const char* name : {"bert", "gpt2", "vit", "llama", "external"}) check_model(name, false);
}

TEST_CASE("ops: interpreted graphs give the numbers of ONNX Runtime at two sizes") {
  for (const char* name :
       {"elementwise", "layout", "networks", "contrib", "group_query", "recurrent", "vision", "signals", "strides"})
    check_model(name, false);
}

TEST_CASE("ops: interpreted graphs give the numbers of onnx's reference for ops that ONNX Runtime does not have") {
  check_model("newest", false);
}

TEST_CASE("models: compiled graphs give the numbers of ONNX Runtime at two sizes") {
  for (const char* name : {"bert", "llama", "group_query", "recurrent"}) check_model(name, true);
}

TEST_CASE("models: sizes in shape computations become the named dims of the inputs") {
  const importing::ImportedGraph imported = importing::import_graph(model_folder("bert") / "model.onnx");
  CHECK(imported.outputs.at("last_hidden_state").value().type().to_string() == "f32[batch_size, sequence_length, 8]");
  CHECK(imported.outputs.at("pooler_output").value().type().to_string() == "f32[batch_size, 8]");
  for (const ir::Node& node : imported.graph.ir().nodes)
    for (const Dim& dim : node.type.shape)
      for (const std::string& name : dim.unknowns()) CHECK((name == "batch_size" || name == "sequence_length"));
}

TEST_CASE("models: sizes that strides must divide are multiples, and slices by sizes count from the end") {
  const importing::ImportedGraph imported = importing::import_graph(model_folder("strides") / "model.onnx");
  const std::string text = ir::print(imported.graph.finish());
  CHECK_THAT(text, Contains("input %image: f32[n, 3, 12*height_div_12, 4*width_div_4]"));
  CHECK(imported.outputs.at("windows").value().type().to_string() == "f32[n, 4, height_div_12, width_div_4]");
  CHECK(imported.outputs.at("tail").value().type().to_string() == "f32[n, 3, 12*height_div_12, 4*width_div_4]");
  std::string message;
  const auto run = [&](std::int64_t height) {
    return error_label(
        [&] { run_imported(imported, Tensors({{"image", HostTensor(f32, {1, 3, height, 8})}}), false); }, &message);
  };
  CHECK(run(18) == "dim_conflict");
  CHECK_THAT(message, Contains("12*height_div_12 is 18"));
  // "last" has all rows for any height; "tail" needs a height of 1 or more.
  std::vector<std::string> checks;
  for (const ir::DimCheck& check : imported.graph.ir().checks)
    if (check.label == "import_range") checks.push_back(check.message);
  CHECK(checks == std::vector<std::string>{
                      "the bound -12*height_div_12 of a slice counts from the end",
                      "(12*height_div_12 - 1) / 12, which is rounded, is not negative",
                  });
  CHECK(imported.outputs.at("rounded").value().type().to_string() == "i64[height_div_12 - 1]");
}

TEST_CASE("models: named sizes of inputs can be fixed, also sizes that strides do not divide") {
  const std::filesystem::path file = model_folder("strides") / "model.onnx";
  const importing::ImportedGraph imported = importing::import_graph(file, {.sizes = {{"height", 18}, {"width", 10}}});
  CHECK_THAT(ir::print(imported.graph.finish()), Contains("input %image: f32[n, 3, height=18, width=10]"));
  CHECK(imported.outputs.at("ceil").value().type().shape[0] == Dim("n"));
  CHECK(run_imported(imported, Tensors({{"image", HostTensor(f32, {1, 3, 18, 10})}}), false).at("size").numel() > 0);
  std::string message;
  const auto import = [&](const DimBindings& sizes) {
    return error_label([&] { importing::import_graph(file, {.sizes = sizes}); }, &message);
  };
  CHECK(import({{"hight", 18}}) == "dim_unknown");
  CHECK_THAT(message,
             Contains("no input has a size named hight") && Contains("its named sizes are height, n, width"));
  CHECK(import({{"height", -1}}) == "dim_negative");
}

TEST_CASE("models: weights are parameters by their names, and large buffers of bools are states") {
  const importing::ImportedGraph imported = importing::import_graph(model_folder("gpt2") / "model.onnx");
  CHECK(imported.parameters.contains("h.1.mlp.c_proj.weight"));
  CHECK(imported.parameters.get("wte.weight").shape() == std::vector<std::int64_t>{13, 8});
  CHECK(imported.graph.parameters().size() == imported.parameters.names().size());
}

namespace {

/// Compares the gradient of the first element of each parameter with finite differences of a loss.
void check_gradients(const std::string& name, const importing::ImportedGraph& imported, const Tensor& loss) {
  imported.graph.output("loss", loss);
  const std::vector<Tensor> weights = imported.graph.parameters();
  const std::vector<Tensor> gradients = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i)
    imported.graph.output("d " + weights[i].value().node().name, gradients[i]);
  const ir::Graph graph = imported.graph.finish();
  Tensors arguments = model_runs(model_folder(name))[0].inputs;
  arguments.merge(imported.parameters.values());
  const Tensors exact = ir::interpret(graph, arguments, {.round = false});
  for (const Tensor& weight : weights) {
    const std::string& parameter = weight.value().node().name;
    const double eps = 1e-2, at = arguments.at(parameter).get(0);
    const auto loss_at = [&](double value) {
      arguments.at(parameter).set(0, value);
      return ir::interpret(graph, arguments, {.round = false}).at("loss").item();
    };
    const double difference = (loss_at(at + eps) - loss_at(at - eps)) / (2 * eps);
    arguments.at(parameter).set(0, at);
    INFO(parameter);
    CHECK(exact.at("d " + parameter).get(0) == Approx(difference).epsilon(2e-3).margin(1e-4));
  }
}

}  // namespace

TEST_CASE("models: gradients of an imported graph are those of finite differences") {
  const importing::ImportedGraph imported = importing::import_graph(model_folder("vit") / "model.onnx");
  check_gradients("vit", imported, imported.outputs.at("logits").square().sum());
}

TEST_CASE("models: gradients of LSTM, GRU, RNN and grouped attention are those of finite differences") {
  for (const std::string name : {"recurrent", "group_query"}) {
    const importing::ImportedGraph imported = importing::import_graph(model_folder(name) / "model.onnx");
    Tensor loss;
    for (const auto& [output, value] : imported.outputs)
      loss = loss.is_empty() ? value.square().sum() : loss + value.square().sum();
    CHECK(imported.graph.parameters().size() >= (name == "recurrent" ? 30 : 3));
    check_gradients(name, imported, loss);
  }
}
