#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/graphs/same_graph.h"
#include "tests/support/texts/test_data.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;

namespace {

struct Block {
  std::string kind, text;
  int line;
};

/// Returns the fenced blocks of docs/ir.md.
std::vector<Block> blocks() {
  std::ifstream file(lathe::test::source_path("docs/ir.md"));
  REQUIRE(file.good());
  std::vector<Block> found;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.rfind("```", 0) == 0) {
      if (!inside) found.push_back({line.substr(3), "", number});
      inside = !inside;
    } else if (inside) {
      found.back().text += line + "\n";
    }
  }
  CHECK_FALSE(inside);
  return found;
}

}  // namespace

TEST_CASE("the programs of docs/ir.md parse, verify and round-trip", "[docs]") {
  int programs = 0;
  for (const Block& block : blocks()) {
    if (block.kind != "lathe") continue;
    ++programs;
    INFO("docs/ir.md:" << block.line);
    const Graph graph = parse_graph(block.text, "example.lathe");
    CHECK(find_defect(graph).value_or("sound") == "sound");
    const std::string text = print(graph);
    lathe::test::check_same_graph(graph, parse_graph(text), {.locations = true, .names = true});
    CHECK(print(parse_graph(text)) == text);
  }
  CHECK(programs >= 5);
}

TEST_CASE("the errors in docs/ir.md match the parser", "[docs]") {
  const std::vector<Block> all = blocks();
  int errors = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind != "lathe-error") continue;
    ++errors;
    INFO("docs/ir.md:" << all[i].line);
    REQUIRE(i + 1 < all.size());
    REQUIRE(all[i + 1].kind == "text");
    const std::string said =
        ir::test::error_text([&] { static_cast<void>(parse_graph(all[i].text, "example.lathe")); });
    CHECK(said + "\n" == all[i + 1].text);
  }
  CHECK(errors >= 5);
}
