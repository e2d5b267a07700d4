#include <catch2/catch.hpp>

#include "ir/tensor/op/op.h"
#include "models/export/onnx/nodes/export_table.h"
#include "runtime/files/file_io.h"
#include "tests/support/texts/committed_text.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Returns a table of the exported ops, or of the refused ones.
std::string table(bool is_exported) {
  std::string text = is_exported ? "| op | ONNX |\n|---|---|\n" : "| op | why |\n|---|---|\n";
  for (const ir::Op* op : ir::all_ops())
    if (const onnx::ExportRecord* const record = onnx::find_export(*op);
        record && (record->emit != nullptr) == is_exported)
      text += "| `" + std::string(op->name.value) + "` | " + std::string(record->as) + " |\n";
  return text;
}

/// Replaces the table below a heading.
std::string with_table(std::string page, const std::string& heading, const std::string& table) {
  const std::size_t start = page.find("| op |", page.find(heading)), end = page.find("\n\n", start);
  return page.substr(0, start) + table + page.substr(end + 1);
}

}  // namespace

TEST_CASE("docs/onnx.md lists the ops that are exported, and those that are not") {
  std::string page = read_file(source_path("docs/onnx.md"), 1 << 20);
  page = with_table(page, "### Exported ops\n", table(true));
  check_committed("docs/onnx.md", with_table(page, "### Ops without export\n", table(false)));
}
