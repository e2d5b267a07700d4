#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"
#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;

/// ONNX ops at values where they have cases of their own; those of ATen are in the programs `edges` and `ties`.

TEST_CASE("edge ops: gradients at the limits of Clip and at 0 of PRelu are those of PyTorch") {
  ModelWriter model;
  model.floats("layer.x", {5}, {-1, 0, 2, 1, -3}).floats("low", {}, {-1}).floats("high", {}, {2});
  model.floats("slope", {1}, {0.5});
  model.node("c", "Clip", {"layer.x", "low", "high"}, {"clipped"});
  model.node("p", "PRelu", {"layer.x", "slope"}, {"sloped"}).output("clipped").output("sloped");
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  const std::vector<Tensor> x = imported.graph.parameters();
  CHECK(x.size() == 1);
  for (const char* name : {"clipped", "sloped"})
    imported.graph.output(std::string("d ") + name, grad(imported.outputs.at(name).sum(), x)[0]);
  for (const bool is_compiled : {false, true}) {
    const Tensors results = run_imported(imported, {}, is_compiled);
    CHECK(results.at("clipped").values<float>() == std::vector<float>{-1, 0, 2, 1, -1});
    CHECK(results.at("d clipped").values<float>() == std::vector<float>{0, 1, 0, 1, 0});
    CHECK(results.at("d sloped").values<float>() == std::vector<float>{0.5, 0.5, 1, 1, 0.5});
  }
}

TEST_CASE("edge ops: powers of integers wrap, and negative exponents leave 1 and -1") {
  ModelWriter model;
  model.input("base", {"5"}, 7).input("exponent", {"5"}, 7);
  model.node("p", "Pow", {"base", "exponent"}, {"power"}).output("power");
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  Tensors inputs;
  inputs.set("base", HostTensor::from_numbers({5}, {3, -1, 2, 2, 7}, i64));
  inputs.set("exponent", HostTensor::from_numbers({5}, {41, -3, -1, 64, 0}, i64));
  std::uint64_t large = 1;
  for (int i = 0; i < 41; ++i) large *= 3;
  for (const bool is_compiled : {false, true})
    CHECK(run_imported(imported, inputs, is_compiled).at("power").values<std::int64_t>() ==
          std::vector<std::int64_t>{static_cast<std::int64_t>(large), -1, 0, 0, 1});
}

namespace {

/// Returns the results of a head whose 2 queries weigh all keys that they see equally. The values are 1, 2, 4 and 8.
std::vector<float> means_of(std::int64_t opset, const std::vector<std::string>& more,
                            const std::vector<Message>& attributes, bool first_sees = true, std::int64_t length = 4) {
  ModelWriter model(opset);
  model.floats("k", {1, 1, 4, 1}, {1, 2, 3, 4}).floats("v", {1, 1, 4, 1}, {1, 2, 4, 8});
  model.input("q", {"1", "1", "2", "1"}).input("seen", {"2", "1"}, 9).integers("lengths", {1}, {length});
  std::vector<std::string> inputs{"q", "k", "v"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  model.node("a", "Attention", inputs, {"y"}, attributes).output("y");
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  Tensors values;
  values.set("q", HostTensor(f32, {1, 1, 2, 1}));
  values.set("seen", HostTensor::from_numbers({2, 1}, {first_sees ? 1 : 0, 1}, boolean));
  const Tensors compiled = run_imported(imported, values, true);
  CHECK(difference(compiled, run_imported(imported, values, false), {1e-6, 1e-6}) == std::nullopt);
  return compiled.at("y").values<float>();
}

}  // namespace

TEST_CASE("edge ops: a query of Attention that sees no key gives 0") {
  CHECK(means_of(23, {"seen"}, {}, false) == std::vector<float>{0, 3.75F});
  CHECK(means_of(23, {"seen"}, {attribute("is_causal", 1)}, false) == std::vector<float>{0, 1.5F});
}

TEST_CASE("edge ops: the queries of Attention are the last ones of a cache with lengths") {
  const std::vector<std::string> lengths{"", "", "", "lengths"};
  CHECK(means_of(24, lengths, {}, true, 2) == std::vector<float>{1.5F, 1.5F});
  CHECK(means_of(24, lengths, {attribute("is_causal", 1)}, true, 4) == std::vector<float>{7.F / 3, 3.75F});
  CHECK(means_of(24, lengths, {attribute("is_causal", 1)}, true, 1) == std::vector<float>{0, 1});
}

TEST_CASE("edge ops: windows of Attention") {
  const auto window = [](std::int64_t left, std::int64_t right) {
    return means_of(25, {}, {attribute("left_window_size", left), attribute("right_window_size", right)});
  };
  CHECK(window(0, -1) == std::vector<float>{3.75F, 14.F / 3});
  CHECK(window(1, 0) == std::vector<float>{1, 1.5F});
  CHECK(window(0, 1) == std::vector<float>{1.5F, 3});
  CHECK_THAT(import_error(ModelWriter(24)
                              .input("q", {"1", "1", "2", "1"})
                              .node("a", "Attention", {"q", "q", "q"}, {"y"}, {attribute("left_window_size", 1)})
                              .output("y")),
             Catch::Matchers::Contains("the attribute left_window_size of Attention: a"));
}
