#include <catch2/catch.hpp>
#include <set>

#include "ir/ops/list.h"
#include "tests/ops/error_programs.h"

namespace lathe::ir::test {

namespace {
const std::vector<ErrorProgram>& programs() {
  static const auto all = read_error_programs(LATHE_TEST_DATA "/ops/errors");
  return all;
}
}  // namespace

TEST_CASE("each wrong program gets its error: line, names, sizes, label, hint") {
  REQUIRE(programs().size() > 200);
  for (const ErrorProgram& program : programs()) {
    CAPTURE(program.file, program.name);
    CHECK(error_of(program) == program.expected);
    CHECK(program.expected.find("  [" + program.label + "]\n") != std::string::npos);
  }
}

TEST_CASE("each constraint of each op has a wrong program") {
  std::set<std::pair<std::string, std::string>> shown;
  for (const ErrorProgram& program : programs()) shown.emplace(program.op(), program.label);
  for (const Op* op : all_ops())
    for (const std::string_view label : op->labels.value) {
      CAPTURE(op->name.value, label);
      CHECK(shown.count({std::string(op->name.value), std::string(label)}) == 1);
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
