#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <regex>
#include <set>

#include "tests/structure/sources.h"

/// References in comments and pages must exist: files, pages, error labels, names of the code.
using namespace lathe::test;

namespace {

using Names = std::set<std::string>;

const char* const library[] = {"ir",     "frontend", "passes", "codegen", "runtime",
                               "models", "tools",    "bench",  "examples"};

struct Text {
  std::string place;  ///< "ir/support/dim.h:12"
  std::string folder;
  std::string words;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/') + 1); }

/// Returns the position of a line's comment; npos if there is none. Ignores the slashes of a URL.
std::size_t comment_of(const std::string& line) {
  auto at = line.find("//");
  while (at != std::string::npos && at > 0 && line[at - 1] == ':') at = line.find("//", at + 2);
  return at;
}

bool is_library(const SourceFile& file) {
  return std::any_of(std::begin(library), std::end(library), [&](const char* folder) { return file.is_in(folder); });
}

/// Returns the library's comments, line by line; with `headers_only`, only those of its headers.
std::vector<Text> comments(bool headers_only) {
  std::vector<Text> found;
  for (const SourceFile& file : source_files()) {
    if (!is_library(file) || !file.is_cpp() || (headers_only && !file.is_header())) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      if (const auto at = comment_of(file.lines[i]); at != std::string::npos)
        found.push_back({file.path + ":" + std::to_string(i + 1), folder_of(file.path), file.lines[i].substr(at)});
  }
  return found;
}

/// Returns the lines of the pages, without code blocks.
std::vector<Text> prose() {
  std::vector<Text> found;
  for (const SourceFile& page : pages()) {
    bool code = false;
    for (std::size_t i = 0; i < page.lines.size(); ++i) {
      if (page.lines[i].starts_with("```")) code = !code;
      if (!code) found.push_back({page.path + ":" + std::to_string(i + 1), folder_of(page.path), page.lines[i]});
    }
  }
  return found;
}

std::vector<Text> joined(std::vector<Text> a, const std::vector<Text>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Returns the first group of every match for which `is_there` returns false, as "place: match".
template <class IsThere>
std::vector<std::string> missing(const std::vector<Text>& texts, const char* pattern, const IsThere& is_there) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (const Text& text : texts)
    for (std::sregex_iterator at(text.words.begin(), text.words.end(), expression), end; at != end; ++at)
      if (!is_there(text, (*at)[1].str())) found.push_back(text.place + ": " + (*at)[1].str());
  return found;
}

/// Returns the matches of a pattern in code, without comments.
Names names_in_code(const char* pattern) {
  const std::regex expression(pattern);
  Names names;
  for (const SourceFile& file : source_files()) {
    if (!is_library(file)) continue;
    for (const std::string& line : file.lines) {
      const std::string code = line.substr(0, file.is_cpp() ? comment_of(line) : std::string::npos);
      for (std::sregex_iterator at(code.begin(), code.end(), expression), end; at != end; ++at)
        names.insert((*at)[1].str());
    }
  }
  return names;
}

using Faults = std::vector<std::string>;

/// Whether a place is on a page for users: not one about internals and tests.
bool is_guide(const std::string& place) {
  const Names inside{"CONTRIBUTING.md", "docs/testing.md", "docs/benchmarks.md", "docs/kernel-ir.md", "docs/ops.md"};
  return !place.starts_with("docs/internals/") && !place.starts_with("docs/contributing/") &&
         !inside.contains(place.substr(0, place.find(':')));
}

}  // namespace

TEST_CASE("references: files and pages named in comments and pages exist") {
  Names basenames;
  for (const SourceFile& file : source_files()) basenames.insert(file.path.substr(folder_of(file.path).size()));
  for (const SourceFile& page : pages()) basenames.insert(page.path.substr(folder_of(page.path).size()));
  const auto texts = joined(comments(false), prose());
  // A path in capitals is a placeholder.
  const auto is_there = [](const Text& text, const std::string& path) {
    return is_file(path) || is_file(text.folder + path) ||
           std::any_of(path.begin(), path.end(), [](char c) { return std::isupper(static_cast<unsigned char>(c)); });
  };
  CHECK(missing(texts, R"((?:^|[^\w/.<-])((?:[A-Za-z_][\w-]*/)+[\w-]+\.(?:h|cpp|md|py|sh|cu|txt))\b)", is_there) ==
        Faults{});
  CHECK(missing(prose(), R"(\]\(([^)#: ]+)(?:#[^)]*)?\))", [](const Text& text, const std::string& link) {
          return is_file(text.folder + link) || is_file(link);
        }) == Faults{});
  const Names elsewhere{"cuda.h"};
  CHECK(missing(texts, R"((?:^|[^\w/.<"-])([a-z]\w*\.h)\b)", [&](const Text&, const std::string& name) {
          return basenames.contains(name) || elsewhere.contains(name);
        }) == Faults{});
}

TEST_CASE("references: error labels named in headers and pages are raised somewhere") {
  const Names labels = names_in_code(R"(["\[]([a-z][a-z0-9]*(?:_[a-z0-9]+)+)["\]])");
  CHECK(missing(joined(comments(true), prose()), R"(\[([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\])",
                [&](const Text&, const std::string& label) { return labels.contains(label); }) == Faults{});
}

TEST_CASE("references: the error page has every label that headers name, and only labels that are raised") {
  std::vector<Text> page = prose();
  std::erase_if(page, [](const Text& text) { return !text.place.starts_with("docs/errors.md:"); });
  Names told;
  const std::regex label(R"(`([a-z][a-z0-9]*(?:_[a-z0-9]+)*)`)");
  for (const Text& text : page) {
    const std::string first = text.words.substr(0, text.words.find('|', 1));
    for (std::sregex_iterator at(first.begin(), first.end(), label), end; at != end; ++at)
      told.insert((*at)[1].str());
  }
  CHECK(told.size() > 200);
  std::vector<Text> headers = comments(true);
  std::erase_if(headers, [](const Text& text) {  // rules of kernels: docs/kernel-ir.md
    return text.folder.starts_with("ir/kernel/") || text.folder.starts_with("codegen/cuda/") ||
           text.folder.starts_with("codegen/llvm/intrinsics/") || text.folder.starts_with("passes/lowering/verify/");
  });
  CHECK(missing(headers, R"(\[([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\])",
                [&](const Text&, const std::string& name) { return told.contains(name); }) == Faults{});
  const Names strings = names_in_code(R"x("([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")x");
  Names never;
  std::set_difference(told.begin(), told.end(), strings.begin(), strings.end(), std::inserter(never, never.end()));
  CHECK(never == Names{});
}

TEST_CASE("references: names in backquotes in headers exist in the code") {
  const Names words = names_in_code(R"(\b([A-Za-z_]\w*)\b)");
  const Names programs{"diff"};
  CHECK(missing(comments(true), R"(`([A-Za-z_]\w*)`)", [&](const Text&, const std::string& word) {
          return words.contains(word) || programs.contains(word);
        }) == Faults{});
}

TEST_CASE("references: headers and qualified names in guides are installed") {
  Names installed, words;
  for (const SourceFile& file : source_files())
    if (file.is_in("include/lathe/aot")) installed.insert(file.path.substr(folder_of(file.path).size()));
  const std::regex word(R"(\b[A-Za-z_]\w*\b)");
  for (const SourceFile* header : public_headers()) {
    installed.insert(header->path);
    installed.insert(header->path.substr(folder_of(header->path).size()));
    for (const std::string& line : header->lines)
      for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at) words.insert(at->str());
  }
  std::vector<Text> guides = prose();
  std::erase_if(guides, [](const Text& text) { return !is_guide(text.place); });
  CHECK(guides.size() > 1000);
  CHECK(missing(guides, R"(`((?:[a-z_]+/)*\w+\.h)`)",
                [&](const Text&, const std::string& header) { return installed.contains(header); }) == Faults{});
  CHECK(missing(guides, R"(`(?:[A-Za-z_]+::)+(\w+))",
                [&](const Text&, const std::string& name) { return words.contains(name); }) == Faults{});
}

TEST_CASE("references: functions in backquotes on pages exist in the code") {
  const Names words = names_in_code(R"(\b([A-Za-z_]\w*)\b)");
  CHECK(missing(prose(), R"(`([A-Za-z_]\w*)\([^`]*\)`)",
                [&](const Text&, const std::string& word) { return words.contains(word); }) == Faults{});
}
