#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <functional>
#include <sstream>

#include "tests/structure/sources.h"

/// Code that pages quote must be in the named files, and the site must have all pages.
using namespace lathe::test;

namespace {

std::string unindented(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += line.substr(std::min(line.find_first_not_of(' '), line.size())) + '\n';
  return result;
}

/// A block of code below a line that consists of the path of a file in backquotes.
struct Quotation {
  std::string page, file, code;
};

std::vector<Quotation> quotations() {
  std::vector<Quotation> found;
  for (const SourceFile& page : pages())
    for (std::size_t i = 1; i < page.lines.size(); ++i) {
      const std::string& path = page.lines[i - 1];
      const bool is_code = page.lines[i] == "```cpp" || page.lines[i] == "```c" || page.lines[i] == "```python";
      if (!is_code || path.size() < 3 || path.front() != '`' || path.back() != '`') continue;
      Quotation quotation{page.path, path.substr(1, path.size() - 2), ""};
      while (++i < page.lines.size() && page.lines[i] != "```") quotation.code += page.lines[i] + '\n';
      found.push_back(quotation);
    }
  return found;
}

}  // namespace

TEST_CASE("pages: code under a file name is quoted from that file") {
  CHECK(quotations().size() >= 5);
  for (const Quotation& quotation : quotations()) {
    INFO(quotation.page << ", from " << quotation.file << ":\n" << quotation.code);
    CHECK(unindented(read_source(quotation.file)).find(unindented(quotation.code)) != std::string::npos);
  }
}

TEST_CASE("pages: the site navigation lists each page once, and no missing pages") {
  std::vector<std::string> named, there;
  std::istringstream config(read_source("docs/site/mkdocs.yml"));
  for (std::string line; std::getline(config, line);) {
    const std::size_t from = line.find("docs/"), to = line.find(".md");
    if (from != std::string::npos && to != std::string::npos) named.push_back(line.substr(from, to + 3 - from));
  }
  for (const SourceFile& page : pages())
    if (page.path.starts_with("docs/")) there.push_back(page.path);
  std::sort(named.begin(), named.end());
  std::sort(there.begin(), there.end());
  CHECK(named == there);
}

TEST_CASE("pages: the glossary is sorted, and every reference page has an entry") {
  const std::string glossary = read_source("docs/glossary.md");
  std::vector<std::string> words;
  std::istringstream lines(glossary);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| ") && line != "| word | here it means |")
      words.push_back(line.substr(2, line.find(" |") - 2));
  CHECK(words.size() > 90);
  for (std::string& word : words)
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  CHECK(std::adjacent_find(words.begin(), words.end(), std::greater_equal<>()) == words.end());
  for (const SourceFile& page : pages()) {
    if (!page.path.starts_with("docs/") || page.path.starts_with("docs/tutorial/") || page.path == "docs/glossary.md")
      continue;
    INFO(page.path);
    const std::string link = "](" + page.path.substr(5);
    CHECK((glossary.find(link + ")") != std::string::npos || glossary.find(link + "#") != std::string::npos));
  }
}
