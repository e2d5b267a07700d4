#include <algorithm>
#include <map>
#include <sstream>

#include "tests/embedded/shell.h"
#include "tests/support/texts/test_data.h"

using namespace lathe::test;

namespace {

/// A block of code, and the text in backquotes on the line above it: the name of a file.
struct Block {
  std::string language, above, text;
};

std::string in_backquotes(const std::string& line) {
  const std::size_t begin = line.find('`') + 1, end = line.find('`', begin);
  return begin == 0 || end == line.npos ? "" : line.substr(begin, end - begin);
}

std::vector<Block> blocks_of(const std::string& page) {
  std::ifstream file(source_path(page));
  REQUIRE(file.good());
  std::vector<Block> blocks;
  std::string above;
  bool is_open = false;
  for (std::string line; std::getline(file, line); above = line) {
    if (!line.starts_with("```")) {
      if (is_open) blocks.back().text += line + '\n';
    } else if (is_open = !is_open; is_open) {
      blocks.push_back({line.substr(3), in_backquotes(above), ""});
    }
  }
  return blocks;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Runs lines of commands, with `lathe` the command under test, and warnings as errors. Returns what they print.
std::string run_lines(const Scratch& scratch, const std::string& commands) {
  std::string printed;
  for (const std::string& line : lines_of(commands))
    if (line.starts_with("lathe "))
      printed += lathe_output(scratch, line.substr(6));
    else if (line.starts_with("cc "))
      printed += shell(scratch, "cc " + strict_c + line.substr(2));
    else if (line.starts_with("c++ "))
      printed += shell(scratch, "c++ -Wall -Wextra -Werror -pedantic" + line.substr(3));
    else
      printed += shell(scratch, line);
  return printed;
}

/// Returns the first line of a quotation that the header does not have, in this order.
std::string missing_line(const std::string& quoted, const std::string& header) {
  const std::vector<std::string> there = lines_of(header);
  auto at = there.begin();
  for (const std::string& line : lines_of(quoted)) {
    if (line.empty()) continue;
    at = std::find(at, there.end(), line);
    if (at == there.end()) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("embedded: the programs of docs/c-library.md print the documented output", "[embedded]") {
  const Scratch scratch;
  std::string printed;
  std::map<std::string, int> seen;
  for (const Block& block : blocks_of("docs/c-library.md")) {
    if (block.language == "sh") {
      printed = run_lines(scratch, block.text);
    } else if (block.language == "text") {
      CHECK(printed == block.text);
    } else if (block.language == "lathe" || block.language == "c++" ||
               (block.language == "c" && block.above.ends_with(".c") && block.above.find('/') == std::string::npos)) {
      REQUIRE_FALSE(block.above.empty());
      scratch.write(block.above, block.text);
    } else if (block.above == "classify") {
      CHECK(missing_line(block.text, scratch.read("library/classify.h")).empty());
    } else if (block.above.starts_with("examples/")) {
      INFO(block.text);
      std::ifstream file(source_path(block.above));
      const std::string whole{std::istreambuf_iterator<char>(file), {}};
      CHECK(whole.find(block.text) != std::string::npos);
    } else {
      CHECK(block.language == "bash");  // commands for models that readers have
    }
    ++seen[block.language];
  }
  CHECK(seen ==
        std::map<std::string, int>{
            {"bash", 4}, {"c", 10}, {"c++", 1}, {"cmake", 1}, {"cpp", 1}, {"lathe", 2}, {"sh", 6}, {"text", 4}});
}

TEST_CASE("embedded: the same graph gives the same bytes, for any number of threads", "[embedded]") {
  const Scratch scratch;
  lathe_output(scratch, "model gpt --step --d-model 32 --heads 2 --vocab 64 --context 16 -o step.lathe");
  for (const std::string threads : {"1", "2"})
    lathe_output(scratch,
                 "compile step.lathe --prefix gpt --max B=2,T=16 --target x86-64-v2,x86-64-v3 "
                 "--emit=archive,header,object,source-list --threads " +
                     threads + " -o out" + threads);
  shell(scratch, "diff -r out1 out2 && test $(ls out1 | wc -l) = 6");
}
