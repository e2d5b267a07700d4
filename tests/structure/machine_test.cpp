#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// What schedules and estimates know of machines stands in ir/machine, once.
using namespace lathe::test;

namespace {

using Faults = std::vector<std::string>;

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// Sizes of memory and rates, as they are written: 32 << 10, 48 * 1024, 3e12, 0.6e-6.
bool is_number_of_a_machine(const std::string& code) {
  static const std::regex sizes(R"(\b\d+ ?<< ?[123]0\b|\* ?1024\b(?! ?[*/] ?\d))"), rates(R"(\b[\d.]+e(9|12|-9)\b)");
  return std::regex_search(code, sizes) || std::regex_search(code, rates);
}

Faults numbers_in(const std::vector<std::string>& folders) {
  Faults found;
  for (const SourceFile& file : source_files()) {
    const bool is_schedule =
        file.is_cpp() &&
        std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) { return file.is_in(folder); });
    for (std::size_t i = 0; is_schedule && i < file.lines.size(); ++i)
      if (is_number_of_a_machine(without_comment(file.lines[i])))
        found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  return found;
}

/// Lines of files in a folder that hold a text.
Faults lines_with(const std::vector<std::string>& folders, const std::string& text) {
  Faults found;
  for (const SourceFile& file : source_files())
    for (const std::string& folder : folders)
      for (std::size_t i = 0; file.is_in(folder) && i < file.lines.size(); ++i)
        if (without_comment(file.lines[i]).find(text) != std::string::npos)
          found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  return found;
}

}  // namespace

TEST_CASE("machine: schedules and estimates hold no size of a cache, memory or rate of their own") {
  CHECK(numbers_in({"passes/cpu", "passes/gpu", "passes/fusion", "passes/lowering", "passes/memory"}) == Faults{});
}

TEST_CASE("machine: such numbers are known when they are seen") {
  for (const char* code : {"constexpr int l1 = 32 << 10;", "x <= 1 << 20;", "bytes <= 48 * 1024;",
                           "constexpr double memory = 3e12;", "constexpr int caches = 32<<20;"})
    CHECK(is_number_of_a_machine(code));
  for (const char* code :
       {"1ULL << d", "const int a = 4;", "slice = 1 << 9;", "eps = 1e-6;", "kc = 1024 * 4 / bytes"})
    CHECK_FALSE(is_number_of_a_machine(code));
  CHECK_FALSE(numbers_in({"ir/machine"}).empty());
}

TEST_CASE("machine: what a launch is comes from its record, not from the name of its kernel") {
  for (const char* text : {"kernel.name.find(", ".name.starts_with(\"k", "notes.find", "note.starts_with("})
    CHECK(lines_with({"runtime", "tools", "passes/explain"}, text) == Faults{});
}
