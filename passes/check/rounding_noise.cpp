#include "passes/check/rounding_noise.h"

#include <bit>
#include <cmath>

#include "ir/support/error.h"
#include "ir/support/hash.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/interpret/evaluate.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

namespace {

/// Whether an op rounds its result. Composites do not; the ops of their expansions do.
bool rounds(const Op& op) {
  if (const auto* meaning = op.as<Elementwise>()) return traits(meaning->op).rounds;
  if (const auto* meaning = op.as<Reduce>()) return traits(meaning->combine).rounds;
  if (const auto* meaning = op.as<Custom>())
    return meaning->kind == CustomKind::scatter_add || meaning->kind == CustomKind::cumsum ||
           meaning->kind == CustomKind::linear_recurrence || meaning->kind == CustomKind::grouped_matmul ||
           meaning->kind == CustomKind::segment_outer;
  return op.as<Contraction>() != nullptr;
}

/// Returns the largest relative noise of a number: a few units in the last place for dtypes that are computed in, and
/// one unit for 16-bit floats, which are computed in f32 and rounded once.
double strength(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return 0x1p-50;
    case DType::f32:
    case DType::c64: return 0x1p-21;
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 0;
  }
  throw InternalError("a dtype out of range");
}

/// Returns x moved by a fraction of `most`, or x if that reaches or crosses a quarter. Numbers so large that rounding
/// alone crosses quarters are moved freely: a sine of them has no correct digit.
double moved(double x, double fraction, double most) {
  const double y = x + fraction * most;
  if (most >= 0.25) return y;
  return std::floor(4 * x) == std::floor(4 * y) && std::ceil(4 * x) == std::ceil(4 * y) ? y : x;
}

HostTensor magnitudes(const HostTensor& tensor) {
  HostTensor result = tensor;
  for (std::int64_t i = 0; i < result.numel(); ++i) result.set(i, std::abs(result.get(i)));
  return result;
}

/// Returns the scale of a computation's rounding errors, by element: for a sum of real numbers, the sum of its terms'
/// magnitudes.
HostTensor scale_of(const Node& node, std::span<const HostTensor* const> operands, const HostTensor& value) {
  const auto* reduce = node.op->as<Reduce>();
  if (reduce && reduce->combine == ScalarOp::add)
    return evaluate_reduce(node, *reduce, magnitudes(*operands[0]), value.shape());
  if (const auto* product = node.op->as<Contraction>())
    return evaluate_contraction(node, *product, magnitudes(*operands[0]), magnitudes(*operands[1]), value.shape());
  return magnitudes(value);
}

}  // namespace

double RoundingNoise::next(double x) {
  const bool alike = equals_ == Equals::move_alike;
  const std::uint64_t bits =
      alike ? mix_hash(mix_hash(seed_, count_), std::bit_cast<std::uint64_t>(x)) : mix_hash(seed_, count_++);
  return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
}

void RoundingNoise::operator()(const Node& node, std::span<const HostTensor* const> operands, HostTensor& value) {
  const DType dtype = node.type.dtype;
  if (strength(dtype) == 0 || !rounds(*node.op)) return;
  const double by = strength(rounded_ ? dtype : f64);
  if (equals_ == Equals::move_alike) ++count_;
  if (is_complex(dtype)) {
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      const std::complex<double> x = get_complex(value, i);
      const double real = next(x.real()), imag = next(x.imag());
      set_complex(value, i,
                  {moved(x.real(), real, by * std::abs(x.real())), moved(x.imag(), imag, by * std::abs(x.imag()))});
    }
    return;
  }
  const HostTensor scale = scale_of(node, operands, value);
  for (std::int64_t i = 0; i < value.numel(); ++i) {
    const double x = value.get(i);
    value.set(i, moved(x, next(x), by * scale.get(i)));
  }
}

}  // namespace lathe::ir
