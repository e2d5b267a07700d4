#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/support/tensors/host_tensor.h"

/// Gradients of complex values follow PyTorch: dL/dRe + i dL/dIm, so each of the two views is the gradient of the
/// other.
namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

// ---- view_as_complex: f32[.., 2] -> c64[..]

TensorType to_complex_infer(const InferContext& ctx) {
  const TensorType& type = ctx.operand(0);
  const auto dtype = complex_of(type.dtype);
  if (!dtype)
    ctx.fail("dtype_kind",
             fmt::format("the parts of complex numbers must be f32 or f64, not {}", rules::describe(ctx, 0)),
             "cast them, as in x.to(f32)");
  const auto message =
      fmt::format("the last dim of {} must have size 2: real and imaginary part", rules::describe(ctx, 0));
  const std::string_view hint = "view it as [.., n, 2] first";
  ctx.require(type.rank() > 0, "complex_pair", message, hint);
  ctx.require_equal(type.shape[type.rank() - 1], 2, "complex_pair", message, hint);
  std::vector<Dim> dims = type.shape.dims();
  dims.pop_back();
  return TensorType::contiguous(*dtype, Shape(std::move(dims)));
}

HostTensor to_complex_reference(const Node&, Operands operands, const Sizes& sizes) {
  HostTensor result(c128, sizes);
  for (std::int64_t i = 0; i < result.numel(); ++i)
    set_complex(result, i, {operands[0]->get(2 * i), operands[0]->get(2 * i + 1)});
  return result;
}

void to_complex_gradient(const GradientContext& g) { g.set(0, ir::view_as_real(g.grad)); }

// ---- view_as_real: c64[..] -> f32[.., 2]

TensorType to_real_infer(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::complexes);
  const TensorType& type = ctx.operand(0);
  Shape shape = type.shape;
  shape.push_back(2);
  return TensorType::contiguous(real_part(type.dtype), shape);
}

HostTensor to_real_reference(const Node&, Operands operands, const Sizes& sizes) {
  HostTensor result(f64, sizes);
  for (std::int64_t i = 0; i < operands[0]->numel(); ++i) {
    const auto value = get_complex(*operands[0], i);
    result.set(2 * i, value.real());
    result.set(2 * i + 1, value.imag());
  }
  return result;
}

void to_real_gradient(const GradientContext& g) { g.set(0, ir::view_as_complex(g.grad)); }

// ---- conj and polar

TensorType conj_infer(const InferContext& ctx) {
  rules::require_kind(ctx, 0, rules::complexes);
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

Value conj_expand(GraphBuilder& b, const Node& node, std::span<const Value> operands) {
  const Value signs = literal(b, {2}, {1, -1}, real_part(node.type.dtype));
  return ir::view_as_complex(ir::mul(ir::view_as_real(operands[0]), signs));
}

TensorType polar_infer(const InferContext& ctx) {
  const TensorType type = rules::elementwise_type(ctx, rules::floats);
  const auto dtype = complex_of(type.dtype);
  if (!dtype)
    ctx.fail("dtype_kind",
             fmt::format("the parts of complex numbers must be f32 or f64, not {}", rules::describe(ctx, 0)),
             "cast them, as in x.to(f32)");
  return TensorType::contiguous(*dtype, type.shape);
}

Value polar_expand(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const Value &radius = operands[0], &angle = operands[1];
  const auto whole = [&](const Value& part) { return ir::expand(part, node.type.shape); };
  const Value parts[] = {whole(ir::mul(radius, ir::cos(angle))), whole(ir::mul(radius, ir::sin(angle)))};
  return ir::view_as_complex(stack(parts, -1));
}

// ---- samples

Sample sample(std::vector<SampleOperand> operands) { return {.operands = std::move(operands), .attrs = {}}; }

std::vector<Sample> to_complex_samples() {
  return {sample({{{3, 2}, f64}}), sample({{{2, 2, 2}, f32}}), sample({{{2}, f64}}), sample({{{0, 2}, f64}}),
          sample({{{1, 2}, f64}})};
}

std::vector<Sample> complex_samples() {
  return {sample({{{3}, c128}}), sample({{{2, 2}, c64}}), sample({{{}, c128}}), sample({{{0}, c128}}),
          sample({{{1, 1}, c128}})};
}

std::vector<Sample> polar_samples() {
  return {sample({{{3}, f64}, {{3}, f64}}), sample({{{2, 1}, f64}, {{3}, f64}}), sample({{{}, f32}, {{2}, f32}}),
          sample({{{0}, f64}, {{1}, f64}})};
}

constexpr std::string_view to_complex_labels[] = {"dtype_kind", "complex_pair"};
constexpr std::string_view complex_labels[] = {"dtype_kind"};
constexpr std::string_view polar_labels[] = {"dtype_match", "dtype_kind", "broadcast"};

}  // namespace

constinit const Op view_as_complex = {
    .name = "view_as_complex",
    .doc = "reinterprets pairs of real numbers in the last dim as complex numbers",
    .arity = Arity{1, 1},
    .attrs = std::span<const AttrSpec>(),
    .labels = to_complex_labels,
    .infer = to_complex_infer,
    .meaning = Custom{CustomKind::view_as_complex, to_complex_reference, ByOrder{}},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(to_complex_gradient),
    .samples = to_complex_samples,
};

constinit const Op view_as_real = {
    .name = "view_as_real",
    .doc = "reinterprets complex numbers as pairs of real numbers in a new last dim",
    .arity = Arity{1, 1},
    .attrs = std::span<const AttrSpec>(),
    .labels = complex_labels,
    .infer = to_real_infer,
    .meaning = Custom{CustomKind::view_as_real, to_real_reference, ByOrder{}},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(to_real_gradient),
    .samples = complex_samples,
};

constinit const Op conj = {
    .name = "conj",
    .doc = "the complex conjugate",
    .arity = Arity{1, 1},
    .attrs = std::span<const AttrSpec>(),
    .labels = complex_labels,
    .infer = conj_infer,
    .meaning = Composite{conj_expand},
    .precision = MixedPrecision::follow,
    .gradient = FromExpansion{},
    .samples = complex_samples,
};

constinit const Op polar = {
    .name = "polar",
    .doc = "radius * (cos(angle) + i sin(angle)), broadcast",
    .arity = Arity{2, 2},
    .attrs = std::span<const AttrSpec>(),
    .labels = polar_labels,
    .infer = polar_infer,
    .meaning = Composite{polar_expand},
    .precision = MixedPrecision::f32,
    .gradient = FromExpansion{},
    .samples = polar_samples,
};

}  // namespace lathe::ir::ops
