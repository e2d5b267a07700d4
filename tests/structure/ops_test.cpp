#include <catch2/catch.hpp>
#include <cctype>
#include <set>

#include "ir/ops/primitives.h"
#include "tests/structure/sources.h"

using namespace lathe;

namespace {

/// The names declared in the lists of records: "extern const Op add, sub;".
std::set<std::string> listed_ops() {
  const std::string text = test::read_source("ir/ops/primitives.h") + test::read_source("ir/ops/composites.h"),
                    start = "extern const Op ";
  std::set<std::string> names;
  for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at)) {
    at += start.size();
    std::string name;
    for (; text[at] != ';'; ++at) {
      if (text[at] == '_' || std::isalnum(static_cast<unsigned char>(text[at]))) name += text[at];
      if (text[at] == ',') names.insert(std::exchange(name, {}));
    }
    names.insert(name);
  }
  return names;
}

}  // namespace

TEST_CASE("ops: the list and the registry hold the same") {
  const auto listed = listed_ops();
  std::set<std::string> registered;
  for (const ir::Op* op : ir::all_ops()) registered.insert(std::string(op->name.value));
  CHECK(listed.size() > 50);
  CHECK(registered == listed);
  CHECK(ir::all_ops().size() == registered.size());
}

TEST_CASE("ops: the functions of the DSL that are no more than an op name one") {
  const std::string text = test::read_source("frontend/ops.h"), start = "detail::op(\"";
  int seen = 0;
  for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at)) {
    at += start.size();
    const std::string name = text.substr(at, text.find('"', at) - at);
    INFO(name);
    const ir::Op* op = ir::find_op(name);
    REQUIRE(op);
    CHECK(op->attrs.value.empty());
    ++seen;
  }
  CHECK(seen >= 30);
}

TEST_CASE("ops: every op is described in docs/ops.md and declared in the list by its family") {
  const std::string document = test::read_source("docs/ops.md");
  for (const ir::Op* op : ir::all_ops()) {
    INFO(op->name.value);
    CHECK(document.find("`" + std::string(op->name.value)) != std::string::npos);
  }
}
