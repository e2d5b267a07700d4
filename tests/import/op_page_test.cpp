#include <catch2/catch.hpp>

#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "runtime/files/file_io.h"
#include "tests/support/texts/committed_text.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Returns the words of a text, separated by commas.
std::string listed(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == ' ' ? std::string(", ") : std::string(1, c);
  return text;
}

/// Returns the table of ops of docs/onnx.md: domain and name, versions, attributes.
std::string op_table() {
  std::string text = "| op | versions | attributes |\n|---|---|---|\n";
  const importing::OpTable ops = onnx::standard_ops();
  for (const auto& [key, records] : ops.records()) {
    const std::string op = key.first.empty() ? key.second : key.first + "." + key.second;
    for (const importing::OpRecord* record : records) {
      text += "| " + op + " | " + std::to_string(record->first_version) + " to " +
              std::to_string(record->last_version) + " | " + listed(record->attributes) + " |\n";
    }
  }
  return text;
}

/// Returns the table of ops of docs/pt2.md: domain and name, operands, other arguments.
std::string aten_table() {
  std::string text = "| op | operands | arguments |\n|---|---|---|\n";
  const importing::OpTable ops = pt2::aten_ops();
  for (const auto& [key, records] : ops.records())
    for (const importing::OpRecord* record : records)
      text += "| " + key.first + "." + key.second + " | " + listed(record->operands) + " | " +
              listed(record->attributes) + " |\n";
  return text;
}

/// Compares the table at the end of a page with a generated one.
void check_table(const std::string& path, const std::string& table) {
  const std::string page = read_file(source_path(path), 1 << 20);
  const std::size_t start = page.find("| op |", page.find("## Ops\n"));
  check_committed(path, page.substr(0, start) + table);
}

}  // namespace

TEST_CASE("docs/onnx.md lists the ops that are imported") { check_table("docs/onnx.md", op_table()); }

TEST_CASE("docs/pt2.md lists the ops that are imported") { check_table("docs/pt2.md", aten_table()); }
