#include "tests/support/test_data.h"
#include "tests/tools/command.h"

TEST_CASE("the commands of docs/command.md work in their order", "[tools][docs]") {
  const lathe::test::Scratch scratch;
  std::ifstream file(lathe::test::source_path("docs/command.md"));
  REQUIRE(file.good());
  std::string block;
  int commands = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      block = block.empty() ? line : "";
      continue;
    }
    if (block != "```sh" || line.empty()) continue;
    REQUIRE(line.rfind("lathe ", 0) == 0);
    const auto ran = lathe::test::run_lathe(scratch, line.substr(6));
    INFO(line << "\n" << ran.err);
    CHECK(ran.status == 0);
    ++commands;
  }
  CHECK(commands >= 15);
}
