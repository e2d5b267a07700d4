#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "ir/tensor/op/op.h"
#include "passes/transforms/dtypes/mixed_precision.h"

using namespace lathe;

TEST_CASE("mixed precision: a custom op is computed in the precision of its record, or of its expansion",
          "[mixed_precision]") {
  const auto narrow_tensor = [](const Tensor& x) { return linear(x, x); };
  // Returns the dtypes of the op's operand for an operand that is bf16 already and for one that is not.
  const auto operands_of = [&](const CustomOp& op) {
    const Graph g{"model"};
    const Tensor x = g.input("x", f32, {4, 4});
    g.output("a", op(narrow_tensor(x)));
    g.output("b", op(x));
    const ir::Graph after = ir::mixed_precision(g.finish(), bf16);
    std::string found;
    for (const ir::Node& node : after.nodes)
      if (node.op == &op.record()) found += std::string(name(after[node.operands[0]].type.dtype)) + " ";
    return found;
  };
  const auto own = [](auto forward) { return custom_op("my.op", forward); };
  CHECK(operands_of(own([](const Tensor& x) { return x * sigmoid(x); })) == "bf16 f32 ");
  CHECK(operands_of(own([](const Tensor& x) { return x * exp(x); })) == "f32 f32 ");
  CHECK(operands_of(own([](const Tensor& x) { return matmul(x, x) + x; })) == "bf16 bf16 ");
  CHECK(operands_of(own([](const Tensor& x) { return matmul(x, x).softmax(-1); })) == "f32 f32 ");
  const CustomOp inner = own([](const Tensor& x) { return x.sum(-1); });
  CHECK(operands_of(custom_op("my.outer", [&](const Tensor& x) { return inner(x) * 2; })) == "f32 f32 ");
  CustomOpRecord record;
  record.name = "my.op";
  record.forward = [](std::span<const Tensor> x, const ir::Attributes&) {
    return exp(x[0].to(f32)).to(x[0].dtype());
  };
  record.precision = ir::MixedPrecision::low_precision;
  CHECK(operands_of(CustomOp(record)) == "bf16 bf16 ");
}
