#include "runtime/files/safetensors/safetensors.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::run_lathe;
using test::Scratch;

namespace {

void check_program_refused(const test::Ran& ran, const std::string& what) {
  CAPTURE(ran.err, ran.out);
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(what) && !Contains("internal error"));
}

constexpr const char* graph = R"(graph @g(input %x: f32[n, 8], state %total: f32[8]) {
  %1 = softmax %x {dim=1}
  %2 = sum %1 {dims=[0]}
  %3 = add %total, %2
  update %total <- %3
  output "y" %1
}
)";

}  // namespace

TEST_CASE("run compiles and runs a program file", "[tools]") {
  const Scratch scratch;
  const std::string source = scratch.write("g.lathe", graph), file = scratch.path("g.program");
  REQUIRE(run_lathe(scratch, "dump " + source + " --after collectives --target x86-64-v2 -o " + file).status == 0);
  const std::string arguments = " --random --dim n=3 --target x86-64-v2";
  const auto ran = run_lathe(scratch, "run " + file + arguments);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.out, Contains("y f32[3, 8]") && Contains("total f32[8]"));
  CHECK(ran.out == run_lathe(scratch, "run " + source + arguments).out);
  CHECK(ran.out == run_lathe(scratch, "run " + file + arguments + " --threads 1").out);
  check_program_refused(run_lathe(scratch, "run " + file + " --dim n=5"), "[argument_missing]");
  check_program_refused(run_lathe(scratch, "run " + file + " --random --dim m=5"), "[dim_option]");
  for (const std::string option : {"--interpret", "--no-fused-attention", "--memory-budget 1GiB"})
    check_program_refused(run_lathe(scratch, "run " + file + " --random " + option),
                          option.substr(0, option.find(' ')) + " has no effect on a program file");
}

TEST_CASE("run rejects programs that break rules", "[tools]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& text, const std::string& what) {
    check_program_refused(run_lathe(scratch, "run " + scratch.write("p.program", text) + " --random"), what);
  };
  refused("program @p, 0 regions\nlaunch", "p.program:2:7: expected an integer, found the end of the text");
  refused("program @p, 0 regions\noutput y: f32[4] in y\nbuffer y: output f32[4]\n", "[program_unwritten]");
  refused("program @p, 0 regions\nkernel @k() {\n  check 3 else 1\n}\n", "[program_rule]");
  const std::string sharded =
      "graph @g(input %x: f32[4, 8]) {\n  %1 = all_reduce %x {axis=\"data\", ranks=2, combine=\"sum\"}\n  output "
      "\"y\" "
      "%1\n}\n";
  const std::string file = scratch.path("s.program");
  REQUIRE(
      run_lathe(scratch, "dump " + scratch.write("s.lathe", sharded) + " --after collectives -o " + file).status ==
      0);
  check_program_refused(run_lathe(scratch, "run " + file + " --random"), "[one_process]");
}
