#include <catch2/catch.hpp>

#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

/// Forms of ONNX ops that opsets before 13 have.

namespace {

/// Returns the result y of a model with the input x, interpreted and compiled.
std::vector<float> result_of(const ModelWriter& model, const HostTensor& x) {
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  Tensors inputs;
  inputs.set("x", x);
  const std::vector<float> interpreted = run_imported(imported, inputs, false).at("y").values<float>();
  CHECK(run_imported(imported, inputs, true).at("y").values<float>() == interpreted);
  return interpreted;
}

ModelWriter model_of(std::int64_t opset, std::string_view op, const Sizes& sizes,
                     const std::vector<Message>& attributes, const std::vector<std::string>& more = {}) {
  ModelWriter model(opset);
  std::vector<std::string> inputs{"x"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return model.input("x", sizes).node("op", op, inputs, {"y"}, attributes).output("y");
}

HostTensor row_of(const std::vector<std::int64_t>& sizes) {
  HostTensor x(f32, sizes);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i));
  return x;
}

}  // namespace

TEST_CASE("older ops: Softmax and its kind join the dims from the axis on") {
  const HostTensor zeros(f32, {2, 2, 2});
  CHECK(result_of(model_of(11, "Softmax", {"n", "2", "2"}, {}), zeros) == std::vector<float>(8, 0.25F));
  CHECK(result_of(model_of(13, "Softmax", {"n", "2", "2"}, {}), zeros) == std::vector<float>(8, 0.5F));
  CHECK(result_of(model_of(12, "Softmax", {"n", "2", "2"}, {attribute("axis", 2)}), zeros) ==
        std::vector<float>(8, 0.5F));
  CHECK(result_of(model_of(12, "Hardmax", {"n", "2", "2"}, {}), row_of({2, 2, 2})) ==
        std::vector<float>{0, 0, 0, 1, 0, 0, 0, 1});
  const std::vector<float> logarithms = result_of(model_of(9, "LogSoftmax", {"n", "2", "2"}, {}), zeros);
  CHECK(logarithms[0] == Approx(-1.3862944F));
}

TEST_CASE("older ops: bounds, pads and numbers of elements that are attributes") {
  CHECK(result_of(model_of(9, "Slice", {"n", "4"},
                           {attribute("starts", std::vector<std::int64_t>{1, -2}),
                            attribute("ends", std::vector<std::int64_t>{2, 9223372036854775807})}),
                  row_of({3, 4})) == std::vector<float>{6, 7});
  CHECK(result_of(model_of(10, "Pad", {"2"}, {attribute("pads", std::vector<std::int64_t>{1, 2})}), row_of({2})) ==
        std::vector<float>{0, 0, 1, 0, 0});
  CHECK(result_of(model_of(9, "TopK", {"4"}, {attribute("k", 2)}), row_of({4})) == std::vector<float>{3, 2});
}

TEST_CASE("older ops: Upsample and Resize of opset 10 read the elements before or after the position") {
  ModelWriter larger(9), smaller(10);
  larger.input("x", {"1", "3"}).floats("scales", {2}, {1, 2}).node("u", "Upsample", {"x", "scales"}, {"y"});
  smaller.input("x", {"1", "5"}).floats("scales", {2}, {1, 0.6F}).node("r", "Resize", {"x", "scales"}, {"y"});
  CHECK(result_of(larger.output("y"), row_of({1, 3})) == std::vector<float>{0, 0, 1, 1, 2, 2});
  CHECK(result_of(smaller.output("y"), row_of({1, 5})) == std::vector<float>{0, 2, 4});
}

TEST_CASE("older ops: statistics of each place in a channel are refused") {
  ModelWriter model(7);
  model.input("x", {"n", "2"});
  for (const char* name : {"scale", "bias", "mean", "variance"}) model.floats(name, {2}, {1, 1});
  model.node("b", "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"}, {attribute("spatial", 0)});
  CHECK_THAT(import_error(model.output("y")), Contains("the attribute spatial is 0  [import_attribute]"));
}

TEST_CASE("older ops: weights of a mel filter bank") {
  ModelWriter model(17);
  model.integers("bins", {}, {2}).integers("length", {}, {16}).integers("rate", {}, {8000});
  model.floats("low", {}, {0}).floats("high", {}, {4000}).output("y");
  model.node("m", "MelWeightMatrix", {"bins", "length", "rate", "low", "high"}, {"y"});
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  CHECK(run_imported(imported, {}, false).at("y").values<float>() ==
        std::vector<float>{1, 0, 0.5, 0.5, 0, 1, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}
