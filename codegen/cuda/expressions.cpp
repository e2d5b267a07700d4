#include "codegen/cuda/expressions.h"

#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/names.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/support/error.h"

namespace lathe::cuda {

using kernel::Instruction;
using kernel::Kernel;
using kernel::Opcode;

namespace {

/// Returns the C++ operator with the same semantics on these operands, or an empty string.
std::string_view infix(const Kernel& kernel, const Instruction& in, bool in_int32) {
  const auto operand = [&](std::size_t i) -> const Instruction& { return kernel.values[in.args[i]]; };
  const kernel::Type type = operand(0).type;
  const bool exact = is_float(type.scalar) || type.lanes > 1, sums = exact || (in_int32 && type.scalar == i64);
  const auto where = [](bool fine, std::string_view sign) { return fine ? sign : std::string_view(); };
  switch (in.scalar_op) {
    case ScalarOp::add: return where(sums, "+");
    case ScalarOp::sub: return where(sums, "-");
    case ScalarOp::mul: return where(sums, "*");
    case ScalarOp::div:
    case ScalarOp::rem: {
      const Instruction& by = operand(1);
      const bool safe = by.op == Opcode::constant && type.lanes == 1 && by.integer != 0 && by.integer != -1;
      if (in.scalar_op == ScalarOp::rem) return where(safe, "%");
      return where(exact || safe, "/");
    }
    case ScalarOp::eq: return "==";
    case ScalarOp::ne: return "!=";
    case ScalarOp::lt: return "<";
    case ScalarOp::le: return "<=";
    case ScalarOp::logical_and: return "&&";
    case ScalarOp::logical_or: return "||";
    case ScalarOp::bit_and: return where(type.lanes == 1, "&");
    case ScalarOp::bit_or: return where(type.lanes == 1, "|");
    case ScalarOp::bit_xor: return where(type.lanes == 1, "^");
    default: return {};
  }
}

Expression call(std::string_view function, std::span<const Expression> args) {
  std::vector<std::string_view> texts;
  for (const Expression& arg : args) texts.push_back(arg.text);
  return {fmt::format("{}({})", function, fmt::join(texts, ", "))};
}

std::string inside(const Expression& e) { return e.operation ? "(" + e.text + ")" : e.text; }

}  // namespace

Expression expression(const Kernel& kernel, const Instruction& in, std::span<const Expression> args, bool in_int32) {
  const std::string_view scalar = name(in_int32 && in.type.scalar == i64 ? i32 : in.type.scalar);
  switch (in.op) {
    case Opcode::constant: return {constant_text(in, in_int32)};
    case Opcode::scalar: {
      if (in.scalar_op == ScalarOp::cast) return call(fmt::format("cast<{}>", scalar), args);
      const std::string_view sign = infix(kernel, in, in_int32);
      if (sign.empty()) return call(name(in.scalar_op), args);
      return {fmt::format("{} {} {}", inside(args[0]), sign, inside(args[1])), true};
    }
    case Opcode::fma: return call("fma", args);
    case Opcode::broadcast: return call(fmt::format("broadcast<{}>", in.type.lanes), args);
    case Opcode::ramp: return call(fmt::format("ramp<{}>", in.type.lanes), args);
    case Opcode::reduce:
      return {fmt::format("reduce([]({0} a, {0} b) {{ return {1}(a, b); }}, {2})", scalar, name(in.scalar_op),
                          args[0].text)};
    case Opcode::extract: return {fmt::format("{}.lane[{}]", inside(args[0]), in.integer)};
    case Opcode::shuffle: return call(fmt::format("shuffle<{}>", fmt::join(in.lanes, ", ")), args);
    case Opcode::dim:
    case Opcode::loop_index:
    case Opcode::load:
    case Opcode::load_strided:
    case Opcode::gather:
    case Opcode::get:
    case Opcode::intrinsic: break;
  }
  throw InternalError("an instruction that is no expression");
}

bool is_pure(const Instruction& in) {
  switch (in.op) {
    case Opcode::scalar:
    case Opcode::fma:
    case Opcode::broadcast:
    case Opcode::ramp:
    case Opcode::extract: return true;
    case Opcode::intrinsic: return kernel::record_of(in)->is_pure;
    case Opcode::constant:
    case Opcode::dim:
    case Opcode::loop_index:
    case Opcode::reduce:
    case Opcode::shuffle:
    case Opcode::load:
    case Opcode::load_strided:
    case Opcode::gather:
    case Opcode::get: break;
  }
  return false;
}

}  // namespace lathe::cuda
