#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>

#include "tests/structure/sources.h"
#include "tests/structure/syntax_check.h"

/// The C++ code on pages must compile with the public headers. Blocks that quote a file are compared with it instead
/// (pages_test.cpp), and so are those of pages with their own program (tests/tutorial/check.sh). All other blocks of
/// a page are compiled as one function, each in the scope of the previous ones. Hidden code is in an HTML comment
/// above a block that begins with "<!-- cpp": lines before the block; then, after each line "...", the replacement
/// for that line of the block.
using namespace lathe::test;

namespace {

using Lines = std::vector<std::string>;

struct PageCode {
  std::string place;  ///< of the first line: #line 26 "README.md"
  Lines lines;
  std::vector<Lines> hidden = {};  ///< the lines before it, and the replacement of each "..."
};

bool has_program(const SourceFile& page) {
  return std::any_of(page.lines.begin(), page.lines.end(),
                     [](const std::string& line) { return line.starts_with("Program: [`examples/"); });
}

/// Returns the parts of the comment that ends in line `end`, if it is hidden code.
std::vector<Lines> hidden_above(const SourceFile& page, std::size_t end) {
  std::size_t start = end;
  while (start > 0 && !page.lines[start].starts_with("<!--")) --start;
  std::vector<Lines> parts;
  if (page.lines[start] != "<!-- cpp") return parts;
  parts.emplace_back();
  for (std::size_t i = start + 1; i < end; ++i)
    if (page.lines[i] == "...") {
      parts.emplace_back();
    } else {
      parts.back().push_back(page.lines[i]);
    }
  return parts;
}

std::vector<PageCode> compiled_blocks(const SourceFile& page) {
  std::vector<PageCode> found;
  if (has_program(page)) return found;
  for (std::size_t i = 1; i < page.lines.size(); ++i) {
    const std::string& above = page.lines[i - 1];
    const bool quotes_file = above.size() > 2 && above.front() == '`' && above.back() == '`';
    if (page.lines[i] != "```cpp" || quotes_file) continue;
    PageCode block{"#line " + std::to_string(i + 2) + " \"" + page.path + "\"\n", {}};
    if (above == "-->") block.hidden = hidden_above(page, i - 1);
    while (++i < page.lines.size() && page.lines[i] != "```") block.lines.push_back(page.lines[i]);
    found.push_back(std::move(block));
  }
  return found;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// Returns the block with its hidden code; lines keep their line numbers on the page.
std::string whole(const PageCode& block) {
  std::string code = block.hidden.empty() ? "" : text_of(block.hidden[0]);
  code += block.place;
  std::size_t part = 0;
  for (const std::string& line : block.lines) {
    if (line != "...") {
      code += line + '\n';
      continue;
    }
    REQUIRE(++part < block.hidden.size());
    for (const std::string& hidden : block.hidden[part]) code += hidden + ' ';
    code += '\n';
  }
  CHECK((block.hidden.empty() || part + 1 == block.hidden.size()));
  return code;
}

}  // namespace

TEST_CASE("pages: C++ that is not a quotation compiles against the public headers") {
  std::string program = "#include <lathe/lathe.h>\n#include <cmath>\n#include <cstdio>\nusing namespace lathe;\n";
  std::size_t blocks = 0, functions = 0;
  for (const SourceFile& page : pages()) {
    INFO(page.path);
    std::string code, closed;
    for (const PageCode& block : compiled_blocks(page)) {
      code += "{\n" + whole(block);
      closed += "}";
      ++blocks;
    }
    if (!code.empty()) program += "void page_" + std::to_string(functions++) + "() " + code + closed + "\n";
  }
  CHECK(blocks >= 10);
  CHECK(compiles(program));
}

TEST_CASE("pages: examples read results from an evaluation, since a run of a compiled step is an update") {
  const auto is_update = [](const std::string& line) { return line.find("executable().run(") != std::string::npos; };
  Lines updates;
  for (const SourceFile& page : pages())
    std::copy_if(page.lines.begin(), page.lines.end(), std::back_inserter(updates), is_update);
  for (const SourceFile& file : source_files())
    if (file.is_in("examples"))
      std::copy_if(file.lines.begin(), file.lines.end(), std::back_inserter(updates), is_update);
  CHECK(updates == Lines{});
}
