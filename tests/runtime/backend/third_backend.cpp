#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "runtime/compile.h"
#include "tests/runtime/backend/interpreter_backend.h"

using namespace lathe;

namespace {

Target interpreter() { return {std::make_shared<test::InterpreterBackend>(), "interpreter"}; }

/// A classifier with a table, a norm and an attention; trained by AdamW.
struct Step {
  Step() {
    const Dim n("n");
    const auto weight = [&](const char* name, const Dim& rows) {
      return g.parameter(name, f32, {rows, 8}, Init::normal({.deviation = 0.5}));
    };
    const Tensor x = embedding(g.input("ids", i64, {n}), weight("table", 7));
    const Tensor h = layer_norm(linear(x, weight("w", 8)), g.parameter("scale", f32, {8}, Init::ones()),
                                g.parameter("shift", f32, {8}));
    const Tensor mixed = matmul(softmax(matmul(h, h.transpose(0, 1)), -1), x);
    graph = training_step(g, cross_entropy(mixed, g.input("labels", i64, {n})), AdamW{.lr = 1e-2});
  }

  Executable compiled(const CompileOptions& options) const {
    Executable executable = compile(graph, options);
    executable.parameters().set(initial_values(graph, g.initializers(), 7));
    return executable;
  }

  Graph g{"step"};
  ir::Graph graph;
};

}  // namespace

TEST_CASE("backend: a third backend compiles, trains and reports errors without a change elsewhere", "[backend]") {
  const Step step;
  Executable found = step.compiled({.target = interpreter()}), expected = step.compiled({.threads = 1});
  const Tensors batch{{"ids", HostTensor::from_ints({5}, {0, 3, 6, 3, 1})},
                      {"labels", HostTensor::from_ints({5}, {1, 0, 7, 2, 2})}};
  for (int i = 0; i < 3; ++i)
    CHECK(found.run(batch).at("loss").get(0) == Approx(expected.run(batch).at("loss").get(0)).epsilon(1e-5));
  for (const std::string& name : expected.parameters().names()) {
    const HostTensor a = found.parameters().get(name), b = expected.parameters().get(name);
    for (std::int64_t i = 0; i < b.numel(); ++i) CHECK(a.get(i) == Approx(b.get(i)).margin(1e-5));
  }
  Tensors wrong = batch;
  wrong.at("ids").set(2, 9);
  CHECK_THROWS_WITH(found.run(wrong), Catch::Contains("[index_range]") && Catch::Contains("9"));
  CHECK(found.summary().passes.back().name == "loops");
  CHECK(found.summary().compiled == found.summary().kernels);
}

TEST_CASE("backend: its code stages are stages like any other", "[backend]") {
  const ir::Graph graph = ir::parse_graph("graph @g(input %x: f32[n, 8]) {\n%1 = exp %x\noutput \"y\" %1\n}");
  Compilation now = begin_compilation(graph, machine_of(interpreter()));
  run_until(now, "collectives");
  CHECK(stages_of(now.machine).back().label == "loops");
  CHECK_THAT(print_stage(now, "loops"), Catch::Contains("// kernel 0") && Catch::Contains("exp"));
}
