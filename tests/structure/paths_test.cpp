#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <set>

#include "tests/structure/sources.h"

using namespace lathe::test;

namespace {

const std::string looking =
    "(?:exists|is_\\w+|file_size|(?:symlink_)?status|absolute|(?:weakly_)?canonical|equivalent|"
    "read_symlink|relative|last_write_time|hard_link_count|space|temp_directory_path|"
    "create_\\w+|remove|remove_all|rename|copy|copy_file|permissions|resize_file|"
    "(?:recursive_)?directory_iterator(?: \\w+)?)";

/// Returns the names of the std::error_code objects in a text.
std::set<std::string> error_codes(const std::string& text) {
  static const std::regex declaration(R"(std::error_code[ &]+(\w+(?:, \w+)*))"), word(R"(\w+)");
  std::set<std::string> names;
  for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
    const std::string list = (*found)[1];
    for (std::sregex_iterator name(list.begin(), list.end(), word); name != end; ++name) names.insert(name->str());
  }
  return names;
}

/// The last argument of the call whose opening parenthesis is at `open`.
std::string last_argument(const std::string& text, std::size_t open) {
  int depth = 0;
  std::size_t start = open + 1;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ',' && depth == 1) start = at + 1;
    if (text[at] != ')' || --depth > 0) continue;
    const std::string argument = text.substr(start, at - start);
    const auto first = argument.find_first_not_of(" \n");
    return first == std::string::npos ? "" : argument.substr(first);
  }
  return "";
}

/// Returns calls of std::filesystem that throw its own exceptions, which users must not see.
std::vector<std::string> throwing_calls(const std::string& text) {
  static const std::regex call("(?:std::filesystem|fs)::" + looking + "\\("),
      member(R"((?:\.|->)(?:exists|is_directory|is_regular_file|is_symlink|file_size)\(\))"),
      range(R"(for \([^;\n]*: *(?:std::filesystem|fs)::(?:recursive_)?directory_iterator)");
  const std::set<std::string> codes = error_codes(text);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
    const auto open = static_cast<std::size_t>(at->position() + at->length()) - 1;
    if (!codes.contains(last_argument(text, open))) found.push_back(at->str());
  }
  for (const std::regex* other : {&member, &range})
    for (std::sregex_iterator at(text.begin(), text.end(), *other), end; at != end; ++at) found.push_back(at->str());
  return found;
}

}  // namespace

TEST_CASE("paths: the library accesses them by runtime/files/paths.h or with an error code") {
  int files = 0;
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp() || file.is_in("tests") || file.is_in("bench") || file.is_in("examples")) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    INFO(file.path);
    CHECK(throwing_calls(text) == std::vector<std::string>{});
    files += text.find("std::filesystem") != std::string::npos;
  }
  CHECK(files > 20);
}

TEST_CASE("paths: throwing calls are detected") {
  CHECK(throwing_calls("if (std::filesystem::exists(a / b)) return;").size() == 1);
  CHECK(throwing_calls("std::error_code code;\nif (fs::is_directory(f(a, b), code)) return;").empty());
  CHECK(throwing_calls("std::error_code code;\nif (fs::is_directory(f(a, code))) return;").size() == 1);
  CHECK(throwing_calls("for (const auto& e : fs::directory_iterator(x))").size() == 2);
  CHECK(throwing_calls("fs::directory_iterator item(x, code)").size() == 1);
  CHECK(throwing_calls("if (entry.is_regular_file()) f();").size() == 1);
  CHECK(throwing_calls("fs::create_directories(to);").size() == 1);
}
