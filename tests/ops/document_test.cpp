#include "ir/ops/document.h"

#include <catch2/catch.hpp>

#include "ir/ops/primitives/primitives.h"
#include "tests/support/texts/committed_text.h"

namespace lathe::ir {

TEST_CASE("docs/ops.md matches the op records") { lathe::test::check_committed("docs/ops.md", document_ops()); }

TEST_CASE("the op page names every op, attribute and constraint") {
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
