#include <algorithm>
#include <set>
#include <sstream>

#include "tests/tools/command.h"

using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

/// An option of a help text: "-n,--steps INT:..=5 Needs: --x", and what it does.
struct Option {
  std::string head, doc;
};

/// Descriptions start in this column, on the line of the option or, after a long one, on the next.
constexpr std::size_t column = 30;

std::vector<Option> options_of(const std::string& help) {
  std::vector<Option> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == column && !options.empty()) {
      options.back().head += options.back().doc;
      options.back().doc = line.substr(column);
    } else if (start != line.npos && start >= 2 && line[start] == '-') {
      const std::size_t end = std::min(column, line.size());
      options.push_back({line.substr(start, end - start), line.substr(end)});
    }
  }
  return options;
}

}  // namespace

TEST_CASE("help of generate, embed, eval and finetune states the default of every option with a value", "[tools]") {
  const Scratch scratch;
  // These name what a run works on. Options that need --mesh say how several processes divide the work.
  const std::set<std::string> inputs{"--file",          "--data",   "--text",     "--sources",
                                     "--sample-prompt", "--system", "--bad-word", "--suppress-tokens"};
  for (const std::string command : {"generate", "embed", "eval", "finetune"}) {
    const auto help = run_lathe(scratch, command + " --help");
    REQUIRE(help.status == 0);
    int found = 0;
    for (const Option& option : options_of(help.out)) {
      std::string name = option.head.substr(option.head.find("--"));
      const std::size_t end = std::min(name.find_first_of(" ,:"), name.size());
      const std::string words = name.substr(end);
      name = name.substr(0, end);
      const bool takes_value = words.starts_with(" TEXT") || words.starts_with(" INT") ||
                               words.starts_with(" FLOAT") || words.starts_with(" UINT");
      const bool has_default = words.find('=') != words.npos || words.find("REQUIRED") != words.npos ||
                               option.doc.find("default: ") != option.doc.npos;
      if (!takes_value || inputs.contains(name) || words.find("Needs: --mesh") != words.npos) continue;
      INFO(command << " " << option.head << " " << option.doc);
      CHECK(has_default);
      ++found;
    }
    CHECK(found >= 4);
  }
}
