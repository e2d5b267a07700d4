#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/structure/sources.h"

using namespace lathe::test;

namespace {

/// The namespaces that a file opens at the left margin, in full: "lathe::ir" of `namespace lathe::ir {`.
std::set<std::string> namespaces_of(const SourceFile& file) {
  const std::string opens = "namespace lathe", closes = " {";
  std::set<std::string> found;
  for (const std::string& line : file.lines)
    if (line.starts_with(opens) && line.ends_with(closes))
      found.insert(line.substr(10, line.size() - 10 - closes.size()));
  return found;
}

bool is_within(const std::string& inner, const std::string& outer) {
  return inner == outer || inner.starts_with(outer + "::");
}

bool is_library(const SourceFile& file) {
  static const std::vector<std::string> rooms{"ir", "frontend", "passes", "codegen", "runtime", "tools"};
  return file.is_cpp() && std::any_of(rooms.begin(), rooms.end(), [&](const auto& room) { return file.is_in(room); });
}

std::string folder_of(const SourceFile& file) { return file.path.substr(0, file.path.rfind('/')); }
std::string name_of(const SourceFile& file) { return file.path.substr(file.path.rfind('/') + 1); }

}  // namespace

TEST_CASE("structure: a folder has one namespace, around or within which all of its files lie") {
  std::map<std::string, std::set<std::string>> by_folder;
  for (const SourceFile& file : source_files())
    if (is_library(file)) by_folder[folder_of(file)].merge(namespaces_of(file));
  CHECK(by_folder.size() > 50);
  for (const auto& [folder, namespaces] : by_folder) {
    // One of them has all others around it or within it: two side by side would be two concepts in one room.
    const bool one = namespaces.empty() || std::any_of(namespaces.begin(), namespaces.end(), [&](const auto& own) {
                       return std::all_of(namespaces.begin(), namespaces.end(), [&](const auto& other) {
                         return is_within(other, own) || is_within(own, other);
                       });
                     });
    INFO(folder);
    CHECK(one);
  }
}

TEST_CASE("structure: two headers of one name are the same thing of two languages or machines") {
  // The graph's and the kernel's, a template's, or the DSL's beside the IR's; the emitters for CPUs and for GPUs.
  static const std::set<std::string> twins{"builder.h",     "emitter.h", "graph.h",   "hooks.h",
                                           "interpreter.h", "parser.h",  "printer.h", "verifier.h"};
  std::map<std::string, std::string> seen;
  for (const SourceFile& file : source_files()) {
    if (!is_library(file) || !file.is_header() || twins.contains(name_of(file))) continue;
    INFO(file.path << " beside " << seen[name_of(file)]);
    CHECK(seen[name_of(file)].empty());
    seen[name_of(file)] = file.path;
  }
}
