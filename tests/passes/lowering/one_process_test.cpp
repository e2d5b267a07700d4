#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "passes/pipeline/pipeline.h"

using namespace lathe;

TEST_CASE("a target without collectives rejects the graph of one of several processes") {
  const ir::Graph graph = ir::parse_graph(R"(graph @part(input %x: f32[B@data, 4]) {
  %1 = sum %x {dims=[0]}
  %2 = all_reduce %1 {axis="data", ranks=2, combine="sum"}
  output "y" %2
})",
                                          "part");
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  CHECK(lower_graph(passed, cpu_machine(unnamed_cpu())).program.collectives.size() == 1);
  Machine machine = gpu_machine(gpu_info("sm_80"));
  CHECK(lower_graph(passed, machine).program.collectives.size() == 1);
  machine.fold = nullptr;
  try {
    (void)lower_graph(passed, machine);
    FAIL("it was lowered");
  } catch (const UserError& error) {
    CHECK(error.label() == "one_process");
    CHECK(std::string(error.what()).find("part:3") != std::string::npos);
  }
}
