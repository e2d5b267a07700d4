#include "tests/support/test_data.h"
#include "tests/tools/command.h"

namespace {

/// The commands of a page, run in their order in one folder; how many there are. With `compare` each block of text on
/// the page is a part of what the command before it printed.
int run_page(const std::string& page, bool compare) {
  const lathe::test::Scratch scratch;
  std::ifstream file(lathe::test::source_path(page));
  REQUIRE(file.good());
  std::string kind, text, printed;
  int commands = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      if (kind == "```text" && compare) {
        INFO(text);
        CHECK(printed.find(text) != std::string::npos);
      }
      kind = kind.empty() ? line : "";
      text.clear();
    } else if (kind == "```text") {
      text += line + '\n';
    } else if (kind == "```sh" && !line.empty()) {
      REQUIRE(line.rfind("lathe ", 0) == 0);
      const auto ran = lathe::test::run_lathe(scratch, line.substr(6));
      INFO(line << "\n" << ran.err);
      CHECK(ran.status == 0);
      printed = ran.out;
      ++commands;
    }
  }
  return commands;
}

}  // namespace

TEST_CASE("the commands of docs/command.md work in their order", "[tools][docs]") {
  CHECK(run_page("docs/command.md", false) >= 15);
}

TEST_CASE("the commands of the tutorial print what it says", "[tools][docs]") {
  CHECK(run_page("docs/tutorial/inspecting.md", true) >= 10);
  CHECK(run_page("docs/tutorial/targets.md", true) >= 7);
}

TEST_CASE("the commands of the page on stages work in their order", "[tools][docs]") {
  CHECK(run_page("docs/internals/stages.md", true) >= 12);
}
