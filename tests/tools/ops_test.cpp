#include "tests/tools/command.h"

/// `--ops`: graphs with the custom ops of a shared library. CMake builds the libraries of tests/tools/op_library.
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

constexpr const char* gate = R"(graph @gate(input %x: f32[n, 2], parameter %beta: f32[2]) {
  %1 = my.swish %x, %beta
  %2 = my.clip %1 {high=0.5}
  output "y" %2
}
)";

const std::string library = "--ops '" LATHE_OPS_SWISH "' ";

}  // namespace

TEST_CASE("ops: graphs with custom ops run, verify, print and compile", "[tools][ops]") {
  const Scratch scratch;
  scratch.write("gate.lathe", gate);
  for (const std::string& command :
       {"run " + library + "gate.lathe --random --dim n=3",
        "run " + library + "gate.lathe --random --dim n=3 --interpret", "verify " + library + "gate.lathe --dim n=5",
        "explain " + library + "gate.lathe", "dump " + library + "gate.lathe",
        "opt " + library + "gate.lathe --passes expand", "grad " + library + "gate.lathe",
        "diff " + library + "gate.lathe gate.lathe", "compile " + library + "gate.lathe --emit cuda -o gate.cu",
        "bench " + library + "gate.lathe --dim n=3 --repeat 1"}) {
    const auto ran = run_lathe(scratch, command);
    INFO(command << "\n" << ran.err);
    CHECK(ran.status == 0);
  }
  CHECK_THAT(run_lathe(scratch, "dump " + library + "gate.lathe").out,
             Contains("my.swish %x, %beta") && Contains("my.clip %1 {high=0.5}"));
  CHECK_THAT(run_lathe(scratch, "dump " + library + "gate.lathe --after expand").out,
             !Contains("my.swish") && Contains("exp "));
}

TEST_CASE("ops: a library that cannot be used is an error", "[tools][ops]") {
  const Scratch scratch;
  scratch.write("gate.lathe", gate);
  scratch.write("text.so", "not a library");
  const auto error = [&](const std::string& path) {
    const auto ran = run_lathe(scratch, "dump gate.lathe --ops '" + path + "'");
    CHECK(ran.status == 1);
    return ran.err;
  };
  CHECK_THAT(error("missing.so"), Contains("[ops_library]") && Contains("give the path of a shared library"));
  CHECK_THAT(error("text.so"), Contains("[ops_library]") && Contains("build it as a shared library"));
  CHECK_THAT(error(LATHE_OPS_NO_ENTRY),
             Contains("has no function lathe_op_library_abi") && Contains("LATHE_OP_LIBRARY"));
  CHECK_THAT(error(LATHE_OPS_OTHER_ABI), Contains("its interface is 0000000000000007") && Contains("build it again"));
  const auto twice = run_lathe(scratch, "dump gate.lathe " + library + library);
  CHECK(twice.status == 1);
  CHECK_THAT(twice.err, Contains("my.swish") && Contains("[op_name]") && Contains("in the op library"));
  const auto no_file = run_lathe(scratch, "bench " + library);
  CHECK(no_file.status == 2);
  CHECK_THAT(no_file.err, Contains("--ops requires FILE"));
  // Without the library, the text is an error that names the option.
  const auto without = run_lathe(scratch, "dump gate.lathe");
  CHECK(without.status == 1);
  CHECK_THAT(without.err, Contains("there is no op 'my.swish'") && Contains("--ops"));
}
