#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "tests/frontend/dsl/dsl_errors.h"

/// Every rule that an op can violate, violated in the DSL: the error has the C++ line of the op, and names the op,
/// the rule and the given values.
using namespace lathe;
using lathe::test::DslError;

namespace {

struct Raised {
  std::string text, label;
  Location at;
};

Raised raised_by(const DslError& error) {
  Graph g{"wrong"};
  try {
    error.build(g);
  } catch (const UserError& user) {
    return {user.what(), user.label(), user.location()};
  }
  return {"no error", "", {}};
}

}  // namespace

TEST_CASE("DSL errors name the line, the op, the rule and the arguments") {
  for (const DslError& error : test::dsl_errors()) {
    INFO(error.label << " at line " << error.line);
    const Raised raised = raised_by(error);
    INFO(raised.text);
    CHECK(raised.label == error.label);
    CHECK(raised.at.file() == "dsl_errors_table.cpp");
    CHECK(raised.at.line() == error.line);
    CHECK(raised.text.find(error.says) != std::string::npos);
    CHECK(raised.text.find("dsl_errors_table.cpp:" + std::to_string(error.line)) == 0);
    CHECK(raised.text.find("[" + std::string(error.label) + "]") != std::string::npos);
  }
}

TEST_CASE("every label of every op that the DSL can raise has a DSL program") {
  // The DSL chooses these itself, so no program can violate them.
  const std::set<std::string_view> unreachable = {
      "contract_rank",    "contract_size", "contract_spec",  // einsum creates the contraction's labels
      "gelu_approximate",                                    // a bool
      "random_state",     "scatter_shape",  // random_uniform and scatter_add only occur in gradients and composites
      "constant_value",                     // only a value that its dtype cannot represent, which is converted
      "mesh_axis",        "mesh_combine",  "mesh_dims",  // the sharding pass adds collectives
      "mesh_divide",      "mesh_ranks",
  };
  std::set<std::string_view> raised;
  for (const DslError& error : test::dsl_errors()) raised.insert(error.label);
  for (const ir::Op* op : ir::all_ops())
    for (const std::string_view label : op->labels.value) {
      INFO(op->name.value << " " << label);
      CHECK((raised.contains(label) || unreachable.contains(label)));
    }
}
