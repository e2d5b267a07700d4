#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/structure/sources.h"

using namespace lathe::test;

namespace {

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }

bool holds_word(const std::string& line, const std::string& word) {
  for (auto at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_word(line[at - 1])) && (end == line.size() || !is_word(line[end]))) return true;
  }
  return false;
}

using Faults = std::vector<std::string>;

std::string place(const SourceFile& file, std::size_t line, const std::string& text) {
  return file.path + ":" + std::to_string(line) + ": " + text;
}

/// Returns the lines for which `wrong(file, line)` is true. These tests themselves may contain the words that they
/// search for.
template <class Wrong>
Faults lines_where(const Wrong& wrong) {
  Faults found;
  for (const SourceFile& file : source_files())
    if (!file.is_in("tests/structure"))
      for (std::size_t i = 0; i < file.lines.size(); ++i)
        if (wrong(file, file.lines[i])) found.push_back(place(file, i + 1, file.lines[i]));
  return found;
}

struct Length {
  std::size_t line, lines;
};

/// Returns the function bodies with more than `limit` lines that start at the left margin.
std::vector<Length> long_functions(const SourceFile& file, std::size_t limit) {
  std::vector<Length> found;
  const std::set<std::string> no_function{"namespace", "class",  "struct",    "enum",
                                          "union",     "extern", "constexpr", "const"};
  std::size_t start = 0;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.empty() || line.front() == ' ' || line.front() == '#' || line.front() == '/') continue;
    if (line.front() == '}') {
      if (start && i + 2 - start > limit) found.push_back({start, i + 2 - start});
      start = 0;
    } else if (line.back() == '{' && !no_function.count(line.substr(0, line.find(' ')))) {
      start = i + 1;
    }
  }
  return found;
}

/// Returns the classes with more than `limit` lines that start at the left margin.
std::vector<Length> long_classes(const SourceFile& file, std::size_t limit) {
  std::vector<Length> found;
  std::size_t start = 0;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.ends_with('{') && (line.starts_with("class ") || line.starts_with("struct "))) start = i + 1;
    if (!line.starts_with('}')) continue;
    if (start && i + 2 - start > limit) found.push_back({start, i + 2 - start});
    start = 0;
  }
  return found;
}

/// Returns the member functions with more than `limit` lines in classes that start at the left margin.
std::vector<Length> long_members(const SourceFile& file, std::size_t limit) {
  std::vector<Length> found;
  bool in_class = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.ends_with('{') && (line.starts_with("class ") || line.starts_with("struct "))) in_class = true;
    if (line.starts_with('}')) in_class = false;
    const bool is_member = line.size() > 2 && line.starts_with("  ") && line[2] != ' ';
    if (!in_class || !is_member) continue;
    // A body starts on the line of its declaration, which may be continued, and ends with a brace at its indentation.
    if (line.starts_with("  }")) {
      if (start && i + 2 - start > limit) found.push_back({start, i + 2 - start});
      start = 0;
    } else {
      start = line.ends_with(';') || line.ends_with('}') || line[2] == '/' ? 0 : i + 1;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("files: none is longer than 600 lines") {
  for (const SourceFile& file : source_files()) {
    INFO(file.path);
    CHECK(file.lines.size() <= 600);
  }
}

TEST_CASE("files: a folder has at most 20 files") {
  std::map<std::string, int> files;
  for (const SourceFile& file : source_files())
    if (file.is_cpp()) ++files[file.path.substr(0, file.path.rfind('/'))];
  CHECK(files.size() > 100);
  for (const auto& [folder, count] : files) {
    INFO(folder);
    CHECK(count <= 20);
  }
}

TEST_CASE("files: functions are short") {
  Faults found;
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp()) continue;
    const std::size_t limit = file.is_in("tests") ? 70 : 60;
    for (const auto& [line, lines] : long_functions(file, limit))
      found.push_back(place(file, line, std::to_string(lines) + " lines"));
    for (const auto& [line, lines] : long_members(file, limit))
      found.push_back(place(file, line, std::to_string(lines) + " lines"));
  }
  CHECK(found == Faults{});
}

TEST_CASE("files: classes have at most 300 lines") {
  Faults found;
  for (const SourceFile& file : source_files())
    if (file.is_cpp())
      for (const auto& [line, lines] : long_classes(file, 300))
        found.push_back(place(file, line, std::to_string(lines) + " lines"));
  CHECK(found == Faults{});
}

TEST_CASE("files: no unfinished markers") {
  const std::vector<std::string> marks{"TODO", "FIXME", "XXX", "HACK", "stub", "stubs", "unimplemented"};
  CHECK(lines_where([&](const SourceFile&, const std::string& line) {
          return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) { return holds_word(line, mark); });
        }) == Faults{});
}

TEST_CASE("files: no machine-specific paths") {
  std::vector<std::string> places;
  for (const std::string folder : {"work", "root", "mnt", "Users", "tmp"}) places.push_back("/" + folder + "/");
  CHECK(lines_where([&](const SourceFile&, const std::string& line) {
          return std::any_of(places.begin(), places.end(), [&](const auto& path) {
            const auto at = line.find(path);
            return at != std::string::npos && (at == 0 || !is_word(line[at - 1]));
          });
        }) == Faults{});
}

TEST_CASE("files: the top level holds only the build file, the README and the page for contributors") {
  CHECK(top_level_files() == std::vector<std::string>{"CMakeLists.txt", "CONTRIBUTING.md", "README.md"});
}

TEST_CASE("files: only tools/ and the mock libraries read the environment") {
  CHECK(lines_where([&](const SourceFile& file, const std::string& line) {
          return file.is_cpp() && !file.is_in("tools") && !file.path.starts_with("tests/cuda/mock_") &&
                 (holds_word(line, "getenv") || holds_word(line, "environ"));
        }) == Faults{});
}

TEST_CASE("files: headers have a pragma once and no using namespace") {
  for (const SourceFile& file : source_files()) {
    if (!file.is_header()) continue;
    INFO(file.path);
    REQUIRE_FALSE(file.lines.empty());
    CHECK(file.lines.front() == "#pragma once");
    for (const std::string& line : file.lines) CHECK_FALSE(line.starts_with("using namespace"));
  }
}

TEST_CASE("files: test case names do not break ctest discovery") {
  // CMake, which lists the tests for ctest, splits lists at semicolons outside of brackets.
  const std::string start = "TEST_CASE(";
  for (const SourceFile& file : source_files())
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (!file.lines[i].starts_with(start)) continue;
      std::string text;
      while (i < file.lines.size() && !file.lines[i].ends_with("{")) text += file.lines[i++];
      if (i < file.lines.size()) text += file.lines[i];
      const auto end = std::min(text.find("\","), text.find("\")"));
      INFO(file.path << ": " << text);
      CHECK(text.substr(0, end).find_first_of(";[]") == std::string::npos);
    }
}

// `grep -q` ends at the first match, which kills the process that writes to it. With pipefail the script then fails
// intermittently.
TEST_CASE("files: scripts do not pipe into grep -q") {
  const Faults found = lines_where([](const SourceFile& file, const std::string& line) {
    const auto pipe = line.find("| grep -");
    if (file.is_cpp() || pipe == std::string::npos) return false;
    const auto options = pipe + std::string("| grep -").size();
    return line.substr(options, line.find(' ', options) - options).find('q') != std::string::npos;
  });
  CHECK(found == Faults{});
}

TEST_CASE("files: every test folder is built, and every library folder has tests") {
  std::set<std::string> tested;
  for (const SourceFile& file : source_files())
    if (file.is_in("tests") && file.path.ends_with(".cpp"))
      tested.insert(file.path.substr(6, file.path.find('/', 6) - 6));
  tested.erase("support");
  const std::string build = read_source("tests/CMakeLists.txt");
  for (const std::string& folder : tested) {
    INFO("tests/" << folder);
    CHECK((build.find("lathe_tests(" + folder + " ") != std::string::npos ||
           build.find("add_subdirectory(" + folder + ")") != std::string::npos));
  }
  for (const char* folder : {"kernel", "tensor", "ops", "frontend", "passes", "codegen", "runtime"}) {
    INFO("tests/" << folder);
    CHECK(tested.count(folder));
  }
}
