#include "ir/tensor/text/parser.h"
#include "tests/tools/command.h"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using lathe::test::run_lathe;
using lathe::test::Scratch;

TEST_CASE("diff: the status and the text say whether graphs differ", "[tools][diff]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", lathe::test::small_program);
  const auto same = run_lathe(scratch, "diff small.lathe small.lathe");
  CHECK(same.status == 0);
  CHECK_THAT(same.out, StartsWith("no difference; ") && Contains(" values are equal\n"));

  std::string text(lathe::test::small_program);
  const auto at = text.find("softmax");
  REQUIRE(at != std::string::npos);
  scratch.write("other.lathe", text.replace(at, 7, "log_softmax"));
  const auto differs = run_lathe(scratch, "diff small.lathe other.lathe");
  CHECK(differs.status == 1);
  CHECK(differs.err.empty());
  CHECK_THAT(differs.out, StartsWith("~ ") && Contains("softmax -> log_softmax\n1 value changed; "));
  const auto counts = run_lathe(scratch, "diff small.lathe - --stat < other.lathe");
  CHECK(counts.status == 1);
  CHECK_THAT(counts.out, StartsWith("1 value changed; "));
  CHECK(run_lathe(scratch, "diff small.lathe other.lathe -o found.txt").out.empty());
  CHECK(scratch.read("found.txt") == differs.out);
}

TEST_CASE("diff: errors have status 2", "[tools][diff]") {
  const Scratch scratch;
  scratch.write("small.lathe", lathe::test::small_program);
  scratch.write("wrong.lathe", "graph @g(input %x: f32[n]) { %1 = nonsense %x }");
  for (const char* arguments : {"small.lathe missing.lathe", "small.lathe wrong.lathe", "- -", "small.lathe"}) {
    CAPTURE(arguments);
    const auto ran = run_lathe(scratch, std::string("diff ") + arguments + " < small.lathe");
    CHECK(ran.status == 2);
    CHECK(!ran.err.empty());
    CHECK(ran.out.empty());
  }
}

TEST_CASE("diff: what a pass did", "[tools][diff]") {
  const Scratch scratch;
  scratch.write("g.lathe", "graph @g(input %x: f32[n, 4]) { %1 = neg %x %2 = exp %x output \"y\" %1 }");
  REQUIRE(run_lathe(scratch, "opt g.lathe --passes dce -o after.lathe").status == 0);
  CHECK_THAT(run_lathe(scratch, "diff g.lathe after.lathe").out,
             StartsWith("- %2 = exp %x : f32[n, 4] (g.lathe:1)\n1 value removed; 2 values are equal\n"));
}
