#include <catch2/catch.hpp>
#include <random>

#include "ir/tensor/builder.h"
#include "ir/tensor/text/printer.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;

namespace {

/// The sample with some sizes replaced by separate symbolic dims, so that equalities that a rule needs become
/// run-time checks. Returns the values of the composite and of its expansion; nothing if the rule rejects such dims.
struct Pair {
  TensorType composite, expansion;
};
std::optional<Pair> expand_with_unknowns(const Op& op, const Sample& sample, std::mt19937& random) {
  GraphBuilder b("g");
  std::vector<Value> operands;
  for (const SampleOperand& operand : sample.operands) {
    const std::string n = std::to_string(operands.size());
    std::vector<Dim> dims;
    for (const std::int64_t size : operand.sizes)
      dims.push_back(size == 1 || random() % 3 == 0 ? Dim(size)
                                                    : Dim(std::string(1, static_cast<char>('a' + random() % 26)) + n +
                                                          std::to_string(dims.size())));
    operands.push_back(b.argument(ir::test::op("input"), "x" + n, operand.dtype, Shape(dims)));
  }
  try {
    const Value value = b.add(op, operands, sample.attrs);
    const Node node = value.node();
    return Pair{node.type, op.as<Composite>()->expand(b, node, operands).type()};
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("a composite and its expansion choose the same of two sizes that only a check makes equal", "[checks]") {
  std::mt19937 random(11);
  int expanded = 0;
  for (const Op* op : all_ops()) {
    if (!op->as<Composite>()) continue;
    for (const Sample& sample : op->samples.value())
      for (int i = 0; i < 40; ++i)
        if (const auto pair = expand_with_unknowns(*op, sample, random)) {
          ++expanded;
          CAPTURE(op->name.value);
          CHECK(print_type(pair->composite) == print_type(pair->expansion));
        }
  }
  CHECK(expanded > 1000);
}
