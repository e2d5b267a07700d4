#include <catch2/catch.hpp>

#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/structure/sources.h"

/// docs/pytorch.md, the table of PyTorch's functions.
using namespace lathe::test;

namespace {

using Names = std::set<std::string>;

void collect(const std::string& text, const std::regex& pattern, Names& found) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) found.insert((*at)[1]);
}

/// Returns the functions that a header declares, or its methods.
Names declared_in(const std::string& path, bool methods) {
  static const std::regex functions(R"(\n[A-Z]\w* (\w+)\()"), vectors(R"(\nstd::vector<Tensor> (\w+)\()");
  static const std::regex members(R"(\n  (?:Tensor|std::vector<Tensor>|Ranked) (\w+)\()");
  const std::string text = read_source(path);
  REQUIRE_FALSE(text.empty());
  Names found;
  collect(text, methods ? members : functions, found);
  if (!methods) collect(text, vectors, found);
  return found;
}

Names op_functions() {
  Names found;
  for (const SourceFile* header : public_headers()) {
    if (!header->is_in("frontend/ops") || header->path.find("custom_op") != std::string::npos ||
        header->path.ends_with("op_library.h"))
      continue;
    found.merge(declared_in(header->path, false));
  }
  found.erase("op");  // of all functions of one op
  return found;
}

/// Returns the names in code spans of one column of all tables, in which rows have that column.
Names named_in_column(const std::string& page, std::size_t column) {
  static const std::regex name(R"(`([a-z_0-9]+)`)");
  Names found;
  std::istringstream lines(page);
  bool is_missing = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) is_missing = line == "## Missing functions";
    if (is_missing || !line.starts_with("| ")) continue;
    std::istringstream cells(line.substr(2));
    std::string cell;
    for (std::size_t i = 0; i <= column && std::getline(cells, cell, '|'); ++i)
      if (i == column) collect(cell, name, found);
  }
  return found;
}

}  // namespace

TEST_CASE("pytorch page: every function of frontend/ops is on it") {
  const std::string page = read_source("docs/pytorch.md");
  Names named = named_in_column(page, 1);
  named.merge(named_in_column(page, 0));
  const Names functions = op_functions();
  CHECK(functions.size() > 100);
  for (const std::string& function : functions) {
    INFO(function);
    CHECK(named.contains(function));
  }
}

TEST_CASE("pytorch page: the functions in the column of Lathe exist") {
  Names known = op_functions();
  known.merge(declared_in("frontend/tensor.h", true));
  known.merge(declared_in("frontend/graph.h", true));
  for (const std::string& name : named_in_column(read_source("docs/pytorch.md"), 1)) {
    INFO(name);
    CHECK(known.contains(name));
  }
}
