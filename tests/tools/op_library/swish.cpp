#include "frontend/dsl.h"
#include "frontend/ops/op_library.h"

using namespace lathe;

/// A library for `lathe --ops`: x * sigmoid(beta * x), and a clip with attributes.
LATHE_OP_LIBRARY(ops) {
  ops.add(custom_op("my.swish", [](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); }));
  CustomOpRecord clip;
  clip.name = "my.clip";
  clip.attrs = {{"high", ir::AttrKind::real, false, 1.0, "the largest value"}};
  clip.forward = [](std::span<const Tensor> operands, const ir::Attributes& attrs) {
    return clamp(operands[0], 0, attrs.get<double>("high"));
  };
  ops.add(CustomOp(std::move(clip)));
}
