#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "tests/runtime/compiled/check_compiled.h"

using namespace lathe;
using lathe::test::parse;

namespace {

std::vector<std::string> stage_names(const Executable& executable) {
  std::vector<std::string> names;
  for (const ir::PassRun& run : executable.summary().passes) names.push_back(run.name);
  return names;
}

}  // namespace

TEST_CASE("executable: its summary has every stage that its graph went through", "[executable]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[8, 8], state %rng: i64[2]) {
  %1 = dropout %x, %rng {p=0.5, stream=0}
  output "y" %1
})");
  const std::vector<std::string> plain = stage_names(compile(graph));
  CHECK(plain.front() == "dce");
  REQUIRE(plain.size() > 10);
  CHECK(std::vector(plain.end() - 2, plain.end()) == std::vector<std::string>{"fuse", "kernels"});

  std::vector<std::string> shown;
  CompileOptions options{.mode = Mode::evaluation};
  options.lower.memory = MemoryBudget{.bytes = 1 << 20};
  options.pipeline.dump_after = [&](std::string_view stage, const ir::Graph&) { shown.emplace_back(stage); };
  const Executable evaluation = compile(graph, options);
  const std::vector<std::string> all = stage_names(evaluation);
  CHECK(all[0] == "evaluation");
  CHECK(all[1] == "dce");
  CHECK(std::vector(all.end() - 3, all.end()) == std::vector<std::string>{"rematerialize", "fuse", "kernels"});
  CHECK(std::vector(shown.begin(), shown.begin() + 3) == std::vector<std::string>{"input", "evaluation", "dce"});
  CHECK(std::count(shown.begin(), shown.end(), "input") == 1);
  for (const ir::PassRun& run : evaluation.summary().passes) {
    INFO(run.name);
    CHECK(run.seconds >= 0);
  }
}
