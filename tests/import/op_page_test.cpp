#include <catch2/catch.hpp>

#include "models/import/onnx/ops/standard_ops.h"
#include "runtime/files/file_io.h"
#include "tests/support/texts/committed_text.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Returns the table of ops of docs/onnx.md: domain and name, versions, attributes.
std::string op_table() {
  std::string text = "| op | versions | attributes |\n|---|---|---|\n";
  const importing::OpTable ops = onnx::standard_ops();
  for (const auto& [key, records] : ops.records()) {
    const std::string op = key.first.empty() ? key.second : key.first + "." + key.second;
    for (const importing::OpRecord* record : records) {
      std::string attributes;
      for (const char c : record->attributes) attributes += c == ' ' ? std::string(", ") : std::string(1, c);
      text += "| " + op + " | " + std::to_string(record->first_version) + " to " +
              std::to_string(record->last_version) + " | " + attributes + " |\n";
    }
  }
  return text;
}

}  // namespace

TEST_CASE("docs/onnx.md lists the ops that are imported") {
  const std::string path = "docs/onnx.md", page = read_file(source_path(path), 1 << 20), heading = "## Ops\n";
  const std::size_t table = page.find("| op |", page.find(heading));
  check_committed(path, page.substr(0, table) + op_table());
}
