#include "ir/kernel/interpret/lane_functions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/kernel/interpret/scalar_arithmetic.h"
#include "ir/support/error.h"

namespace lathe::kernel {

void copy_lanes(const DecodedStatement& statement, Scalar* lanes) {
  const Scalar* const from = lanes + statement.a;
  Scalar* const out = lanes + statement.out;
  for (int i = 0; i < statement.lanes; ++i) out[i] = from[i];
}

namespace {

/// Sets each lane of the result to f(a, b, c) of the lanes of the operands.
template <class F>
[[gnu::always_inline]] inline void each_lane(const DecodedStatement& statement, Scalar* lanes, const F& f) {
  const Scalar *const a = lanes + statement.a, *const b = lanes + statement.b, *const c = lanes + statement.c;
  Scalar* const out = lanes + statement.out;
  for (int i = 0; i < statement.lanes; ++i) out[i] = f(a[i], b[i], c[i]);
}

template <ScalarOp op, DType dtype>
void scalar_lanes(const DecodedStatement& statement, Scalar* lanes) {
  each_lane(statement, lanes, [](Scalar a, Scalar b, Scalar c) { return evaluate_inline(op, dtype, a, b, c); });
}

/// The functions of all scalar ops up to select, by op.
template <DType dtype, std::size_t... op>
constexpr auto functions_of(std::index_sequence<op...>) {
  return std::array<LaneFunction, sizeof...(op)>{scalar_lanes<static_cast<ScalarOp>(op), dtype>...};
}
template <DType dtype>
LaneFunction function_of(ScalarOp op) {
  static constexpr auto all =
      functions_of<dtype>(std::make_index_sequence<static_cast<std::size_t>(ScalarOp::cast)>());
  return all[static_cast<std::size_t>(op)];
}

LaneFunction scalar_function(ScalarOp op, DType dtype) {
  switch (dtype) {
    case DType::f64: return function_of<f64>(op);
    case DType::f32: return function_of<f32>(op);
    case DType::bf16: return function_of<bf16>(op);
    case DType::f16: return function_of<f16>(op);
    case DType::i64: return function_of<i64>(op);
    case DType::i32: return function_of<i32>(op);
    case DType::i8: return function_of<i8>(op);
    case DType::u8: return function_of<u8>(op);
    case DType::boolean: return function_of<boolean>(op);
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a complex value in a kernel");
}

template <DType dtype>
void fma_lanes(const DecodedStatement& statement, Scalar* lanes) {
  each_lane(statement, lanes, [](Scalar a, Scalar b, Scalar c) { return fma_inline(dtype, a, b, c); });
}

template <DType from>
void cast_lanes(const DecodedStatement& statement, Scalar* lanes) {
  const DType to = statement.instruction->type.scalar;
  each_lane(statement, lanes, [to](Scalar a, Scalar, Scalar) { return evaluate_cast(from, to, a); });
}

LaneFunction cast_function(DType from) {
  switch (from) {
    case DType::f64: return cast_lanes<f64>;
    case DType::f32: return cast_lanes<f32>;
    case DType::bf16: return cast_lanes<bf16>;
    case DType::f16: return cast_lanes<f16>;
    case DType::i64: return cast_lanes<i64>;
    case DType::i32: return cast_lanes<i32>;
    case DType::i8: return cast_lanes<i8>;
    case DType::u8: return cast_lanes<u8>;
    case DType::boolean: return cast_lanes<boolean>;
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a complex value in a kernel");
}

void broadcast_lanes(const DecodedStatement& statement, Scalar* lanes) {
  std::fill_n(lanes + statement.out, statement.lanes, lanes[statement.a]);
}

void ramp_lanes(const DecodedStatement& statement, Scalar* lanes) {
  const DType dtype = statement.instruction->type.scalar;
  const std::int64_t first = lanes[statement.a].integer, stride = lanes[statement.b].integer;
  for (int i = 0; i < statement.lanes; ++i)
    lanes[statement.out + static_cast<std::size_t>(i)].integer = wrap_inline(dtype, first + i * stride);
}

void reduce_lanes(const DecodedStatement& statement, Scalar* lanes) {
  const Instruction& in = *statement.instruction;
  lanes[statement.out] = evaluate_reduction(in.scalar_op, in.type.scalar,
                                            {lanes + statement.a, static_cast<std::size_t>(statement.operand_lanes)});
}

void shuffle_lanes(const DecodedStatement& statement, Scalar* lanes) {
  const std::vector<int>& from = statement.instruction->lanes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(statement.lanes); ++i) {
    const int lane = from[i], beyond = lane - statement.operand_lanes;
    lanes[statement.out + i] = beyond < 0 ? lanes[statement.a + static_cast<std::size_t>(lane)]
                                          : lanes[statement.b + static_cast<std::size_t>(beyond)];
  }
}

}  // namespace

LaneFunction lane_function(const Kernel& kernel, const Instruction& in) {
  switch (in.op) {
    case Opcode::scalar: {
      const DType operand = kernel.values[static_cast<std::size_t>(in.args.back())].type.scalar;
      return in.scalar_op == ScalarOp::cast ? cast_function(operand) : scalar_function(in.scalar_op, operand);
    }
    case Opcode::fma: return in.type.scalar == f64 ? fma_lanes<f64> : fma_lanes<f32>;
    case Opcode::broadcast: return broadcast_lanes;
    case Opcode::ramp: return ramp_lanes;
    case Opcode::reduce: return reduce_lanes;
    case Opcode::extract:
    case Opcode::get: return copy_lanes;
    case Opcode::shuffle: return shuffle_lanes;
    case Opcode::constant:
    case Opcode::dim:
    case Opcode::loop_index:
    case Opcode::load:
    case Opcode::load_strided:
    case Opcode::gather:
    case Opcode::intrinsic: break;
  }
  throw InternalError("an instruction that is not computed from lanes");
}

}  // namespace lathe::kernel
