#include <functional>
#include <map>
#include <regex>
#include <set>

#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

namespace {

/// Runs the commands of a page in order, in one folder. Returns their number. With `compare`, each text block of the
/// page must be part of the output of the command before it. `prepare` adds the files that a reader has. Graphs on
/// the page are written to files, whose names are in backquotes on the line above each graph.
int run_page(const std::string& page, bool compare,
             const std::function<void(const lathe::test::Scratch&)>& prepare = {}) {
  const lathe::test::Scratch scratch;
  if (prepare) prepare(scratch);
  std::ifstream file(lathe::test::source_path(page));
  REQUIRE(file.good());
  std::string kind, text, printed, above, name;
  int commands = 0;
  for (std::string line; std::getline(file, line); above = line) {
    if (line.rfind("```", 0) == 0) {
      if (kind == "```text" && compare) {
        INFO(text);
        CHECK(printed.find(text) != std::string::npos);
      }
      if (kind == "```lathe") scratch.write(name, text);
      if (line == "```lathe") {
        REQUIRE(above.size() > 2);
        name = above.substr(1, above.size() - 2);
      }
      kind = kind.empty() ? line : "";
      text.clear();
    } else if (kind == "```text" || kind == "```lathe") {
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

/// Returns the options of every `lathe COMMAND ...` on the pages, by command.
std::map<std::string, std::set<std::string>> options_on_pages() {
  const std::regex command(R"(\blathe ([a-z]+)((?: [^`|;#]*)?))"), option(R"((?:^|[ \[])(--[a-z][a-z0-9-]*))");
  std::map<std::string, std::set<std::string>> found;
  std::vector<std::filesystem::path> files{lathe::test::source_path("README.md"),
                                           lathe::test::source_path("CONTRIBUTING.md")};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(lathe::test::source_path("docs")))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      for (std::sregex_iterator at(line.begin(), line.end(), command), end; at != end; ++at) {
        const std::string arguments = (*at)[2];
        for (std::sregex_iterator o(arguments.begin(), arguments.end(), option); o != end; ++o)
          found[(*at)[1]].insert((*o)[1]);
      }
  }
  return found;
}

}  // namespace

TEST_CASE("command options used in pages exist", "[tools][docs]") {
  const lathe::test::Scratch scratch;
  const auto options = options_on_pages();
  CHECK(options.size() >= 15);
  for (const auto& [command, names] : options) {
    INFO("lathe " << command);
    const auto help = lathe::test::run_lathe(scratch, command + " --help");
    CHECK(help.status == 0);
    for (const std::string& name : names) {
      INFO(name);
      CHECK(std::regex_search(help.out, std::regex(name + "\\b(?!-)")));
    }
  }
}

TEST_CASE("the commands of docs/command.md work in order", "[tools][docs]") {
  CHECK(run_page("docs/command.md", false) >= 15);
}

TEST_CASE("the commands of the tutorial print the documented output", "[tools][docs]") {
  CHECK(run_page("docs/tutorial/6-inspecting.md", true) >= 10);
  CHECK(run_page("docs/tutorial/7-targets.md", true) >= 7);
}

TEST_CASE("the commands of the page on stages work in order", "[tools][docs]") {
  CHECK(run_page("docs/internals/stages.md", true) >= 12);
}

TEST_CASE("the commands of the pages on fusion and on products print the documented output", "[tools][docs]") {
  CHECK(run_page("docs/internals/fusion.md", true) == 3);
  CHECK(run_page("docs/internals/cpu-products.md", true) == 2);
}

TEST_CASE("the commands of the guides on attention and GPUs work, and print the documented output", "[tools][docs]") {
  CHECK(run_page("docs/attention.md", true) == 2);
  CHECK(run_page("docs/gpu.md", true) == 4);
}

TEST_CASE("the commands of the guide on ops work in order", "[tools][docs]") {
  CHECK(run_page("docs/contributing/add-an-op.md", false) == 3);
}

TEST_CASE("the commands of the guide on schedules print the documented output", "[tools][docs]") {
  CHECK(run_page("docs/contributing/add-a-schedule.md", true) == 2);
}

TEST_CASE("the commands of the page on several processes work in order", "[tools][docs]") {
  CHECK(run_page("docs/distributed.md", false) == 7);
}

TEST_CASE("the commands of the page on fine-tuning work in order", "[tools][docs]") {
  const int commands = run_page("docs/finetuning.md", false, [](const lathe::test::Scratch& scratch) {
    std::filesystem::copy(lathe::test::test_data("hf/models/qwen3/model"), scratch.path("model"));
    std::string lines;
    for (int i = 0; i < 8; ++i)
      lines += R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "and"}, )"
               R"({"role": "assistant", "content": "the for"}]})"
               "\n";
    scratch.write("chats.jsonl", lines);
    scratch.write("book.txt", "the for the not the you and the for you and not for the him his with have");
  });
  CHECK(commands >= 5);
}
