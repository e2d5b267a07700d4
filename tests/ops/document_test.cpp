#include "ir/ops/document.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "ir/ops/primitives.h"
#include "tests/support/test_data.h"

namespace lathe::ir {

TEST_CASE("docs/ops.md is what the records say") {
  std::ifstream in(lathe::test::source_path("docs/ops.md"));
  std::stringstream committed;
  committed << in.rdbuf();
  const std::string current = document_ops();
  if (committed.str() != current) std::ofstream("ops.md") << current;
  INFO("the current text has been written to ops.md in the working directory: copy it to docs/");
  CHECK(committed.str() == current);
}

TEST_CASE("the page names every op, attribute and constraint") {
  const std::string page = document_ops();
  for (const Op* op : all_ops()) {
    CAPTURE(op->name.value);
    const std::string text = document_op(*op);
    CHECK(page.find(text) != std::string::npos);
    for (const AttrSpec& spec : op->attrs.value)
      CHECK(text.find("| `" + std::string(spec.name)) != std::string::npos);
    for (const auto label : op->labels.value) CHECK(text.find("`" + std::string(label) + "`") != std::string::npos);
  }
}

}  // namespace lathe::ir
