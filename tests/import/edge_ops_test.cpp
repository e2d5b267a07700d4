#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/ops/ops.h"
#include "models/import/import.h"
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
