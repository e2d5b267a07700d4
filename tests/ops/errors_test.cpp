#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/builder.h"
#include "tests/ops/error_programs.h"
#include "tests/support/texts/test_data.h"

namespace lathe::ir::test {

namespace {
const std::vector<ErrorProgram>& programs() {
  static const auto all = read_error_programs(lathe::test::test_data("ops/errors").string());
  return all;
}
}  // namespace

TEST_CASE("each invalid program gets its error: line, names, sizes, label, hint") {
  REQUIRE(programs().size() > 200);
  for (const ErrorProgram& program : programs()) {
    CAPTURE(program.file, program.name);
    CHECK(error_of(program) == program.expected);
    CHECK(program.expected.find("  [" + program.label + "]\n") != std::string::npos);
  }
}

TEST_CASE("each constraint of each op has an invalid program") {
  std::set<std::pair<std::string, std::string>> shown;
  for (const ErrorProgram& program : programs()) shown.emplace(program.op(), program.label);
  for (const Op* op : all_ops())
    for (const std::string_view label : op->labels.value) {
      if (op->as<Argument>()) continue;  // text cannot give two arguments the same name: see below
      CAPTURE(op->name.value, label);
      CHECK(shown.count({std::string(op->name.value), std::string(label)}) == 1);
    }
}

TEST_CASE("argument names must be unique") {
  for (const Op* op : all_ops()) {
    if (!op->as<Argument>()) continue;
    GraphBuilder builder("mha");
    const GraphBuilder::At at(builder, Location("mha.cpp", 7));
    (void)builder.argument(*op, "x", f32, {2});
    const auto again = [&](std::string_view name) { return builder.argument(*op, name, f32, {2}); };
    const std::string where = "mha.cpp:7: " + std::string(op->name.value) + ": ";
    const std::string hint = "  [argument_name]\n  give each input, parameter and state a name of its own";
    CHECK_THROWS_WITH(again("x"), where + "the graph @mha has an argument named x already" + hint);
    CHECK_THROWS_WITH(again(""), where + "an argument needs a name" + hint);
    CHECK(op->labels.value.size() == 1);
  }
}

TEST_CASE("no program shows a constraint that its op does not list") {
  const std::set<std::string> of_the_builder = {"op_arity", "op_attribute"};
  for (const ErrorProgram& program : programs()) {
    if (of_the_builder.count(program.label)) continue;
    CAPTURE(program.file, program.name);
    const Op* op = find_op(program.op());
    REQUIRE(op);
    CHECK(std::count(op->labels.value.begin(), op->labels.value.end(), program.label) == 1);
  }
}

}  // namespace lathe::ir::test
