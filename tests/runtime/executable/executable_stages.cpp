#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "tests/runtime/compiled/check_compiled.h"

using namespace lathe;
using lathe::test::parse;

namespace {

std::vector<std::string> stage_names(const Executable& executable) {
  std::vector<std::string> names;
  for (const PassRun& run : executable.summary().passes) names.push_back(run.name);
  return names;
}

}  // namespace

TEST_CASE("executable: its summary lists every stage that its graph went through", "[executable]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[8, 8], state %rng: i64[2]) {
  %1 = dropout %x, %rng {p=0.5, stream=0}
  output "y" %1
})");
  const std::vector<std::string> plain = stage_names(compile(graph));
  CHECK(plain.front() == "dce");
  REQUIRE(plain.size() > 10);
  CHECK(std::vector(plain.end() - 5, plain.end()) ==
        std::vector<std::string>{"fuse", "kernels", "collectives", "memory-plan", "asm"});

  std::vector<std::string> shown;
  CompileOptions options{.mode = Mode::evaluation};
  options.lower.memory = MemoryBudget{.bytes = 1 << 20};
  options.pipeline.dump_after = [&](std::string_view stage, const ir::Graph&) { shown.emplace_back(stage); };
  const Executable evaluation = compile(graph, options);
  const std::vector<std::string> all = stage_names(evaluation);
  CHECK(all[0] == "evaluation");
  CHECK(all[1] == "dce");
  CHECK(std::vector(all.end() - 7, all.end()) == std::vector<std::string>{"checkpoint-loops", "rematerialize", "fuse",
                                                                          "kernels", "collectives", "memory-plan",
                                                                          "asm"});
  CHECK(std::vector(shown.begin(), shown.begin() + 3) == std::vector<std::string>{"input", "evaluation", "dce"});
  CHECK(std::count(shown.begin(), shown.end(), "input") == 1);
  for (const PassRun& run : evaluation.summary().passes) {
    INFO(run.name);
    CHECK(run.seconds >= 0);
  }
}

TEST_CASE("executable: memory is planned when sizes are known, which can be given for unknown dims", "[executable]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 8]) {
  %1 = softmax %x {dim=1}
  %2 = sum %1 {dims=[0], keepdim=false}
  output "y" %2
})");
  const auto plans = [](const std::vector<std::string>& names) {
    return std::count(names.begin(), names.end(), "memory-plan");
  };
  Executable late = compile(graph), reserved = compile(graph, {.reserve = {{"n", 5}}});
  Executable known = compile(graph, {.sizes = {{"n", 3}, {"m", 7}}});
  CHECK(plans(stage_names(late)) == 0);
  CHECK(plans(stage_names(reserved)) == 1);
  CHECK(plans(stage_names(known)) == 1);
  CHECK(stage_names(known)[0] == "known-sizes");
  CHECK(program_of(known).inputs[0].shape.to_string() == "[n=3, 8]");
  const Tensors x{{"x", HostTensor::from({3, 8}, std::vector<double>(24, 1.0))}};
  for (Executable* executable : {&late, &reserved, &known}) CHECK(executable->run(x).at("y").get(7) == Approx(0.375));
  const Tensors more{{"x", HostTensor::from({6, 8}, std::vector<double>(48, 1.0))}};
  for (Executable* executable : {&late, &reserved}) CHECK(executable->run(more).at("y").get(7) == Approx(0.75));
  CHECK_THROWS_WITH(known.run(more), Catch::Contains("[argument_shape]"));
}

TEST_CASE("executable: a memory budget that the target does not support is an error", "[executable]") {
  const ir::Graph graph = parse("graph @g(input %x: f32[8, 8]) {\n%1 = exp %x\noutput \"y\" %1\n}");
  CompileOptions options{.target = Target::cuda("sm_90a")};
  options.lower.memory = MemoryBudget{.bytes = 1 << 20};
  CHECK_THROWS_WITH(compile(graph, options), Catch::Contains("[memory_target]"));
  CHECK_THROWS_WITH(compile(graph, {.sizes = {{"n", -1}}}), Catch::Contains("[compile_options]"));
}
