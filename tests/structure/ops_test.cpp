#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "tests/structure/sources.h"

using namespace lathe;

TEST_CASE("ops: each record matches its line in the list, and names are unique") {
  std::set<std::string> names;
  const auto check = [&](const std::string& line, const ir::Op& record) {
    INFO(line);
    CHECK(record.name.value == line);
    CHECK(ir::find_op(line) == &record);
    names.insert(line);
  };
#define LATHE_OP(name) check(#name, ir::ops::name);
#include "ir/ops/ops.def"
  CHECK(names.size() == ir::all_ops().size());
}

TEST_CASE("ops: every op is described in docs/ops.md") {
  const std::string document = test::read_source("docs/ops.md");
  for (const ir::Op* op : ir::all_ops()) {
    INFO(op->name.value);
    CHECK(document.find("`" + std::string(op->name.value)) != std::string::npos);
  }
}
