#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/step.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/loop_cases.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/programs/memory_store.h"

using namespace lathe;
using namespace lathe::test;

namespace {

struct Run {
  DimBindings dims;
  Tensors inputs;
};

/// Compares a library with compile() on the same target: outputs and states of several runs have the same bits, with
/// any number of workers.
void check_same_bits(const ir::Graph& graph, const std::vector<Initializer>& initializers,
                     const std::vector<Run>& runs, const DimBindings& most, const std::string& target) {
  CAPTURE(graph.name, target);
  LibraryRunner library({{"", graph}},
                        {.prefix = "lib", .targets = {target}, .most = most, .initializers = initializers});
  MemoryStore kernels;
  for (const int workers : {0, 1, 2, 7}) {
    CAPTURE(workers);
    Executable jit = compile(graph, {.target = Target::named(target), .threads = 2, .cache = &kernels});
    library.init(runs[0].dims, 3);
    jit.parameters().set(initial_values(graph, initializers, 3, runs[0].dims));
    const auto check_states = [&] {
      for (const auto& [name, value] : library.states()) {
        CAPTURE(name);
        CHECK(same_bits(value, jit.parameters().get(name)));
      }
    };
    check_states();
    for (const Run& run : runs) {
      const Tensors expected = jit.run(run.inputs), found = library.run("lib", run.inputs, run.dims, workers);
      REQUIRE(found.size() == expected.size());
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(same_bits(found.at(name), value));
      }
      check_states();
    }
  }
}

}  // namespace

TEST_CASE("library: training steps have the bits of compile()", "[library]") {
  Graph g("gpt");
  const models::Gpt model(g, small_gpt());
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  const ir::Graph step = training_step(g, model.loss(tokens), AdamW{.lr = 1e-3});
  std::vector<Run> runs;
  for (const auto& [B, T] : {std::pair<std::int64_t, std::int64_t>{2, 9}, {3, 16}, {1, 1}}) {
    HostTensor ids(i64, {B, T + 1});
    for (std::int64_t i = 0; i < ids.numel(); ++i) ids.set_int(i, (i * 7) % 31);
    runs.push_back({{{"B", B}, {"T", T}}, {{"tokens", ids}}});
  }
  for (const char* const target : {"x86-64-v2", "x86-64-v3"})
    check_same_bits(step, g.initializers(), runs, {{"B", 3}, {"T", 16}}, target);
}
