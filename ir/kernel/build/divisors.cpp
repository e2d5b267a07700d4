#include "ir/kernel/build/divisors.h"

#include <algorithm>
#include <bit>

namespace lathe::kernel {

namespace {

constexpr std::int64_t most = std::int64_t{1} << 30;

/// Returns the largest power of two, up to `most`, that divides n.
std::int64_t divisor_of_number(std::int64_t n) {
  const auto bits = static_cast<std::uint64_t>(n) | static_cast<std::uint64_t>(most);
  return std::int64_t{1} << std::countr_zero(bits);
}

std::int64_t divisor_of(const Instruction& in, const Divisors& known) {
  const auto of = [&](std::size_t arg) { return known.of(in.args[arg]); };
  if (in.op == Opcode::constant) return divisor_of_number(in.integer);
  if (in.op == Opcode::broadcast) return of(0);
  if (in.op != Opcode::scalar) return 1;
  switch (in.scalar_op) {
    case ScalarOp::neg:
    case ScalarOp::abs: return of(0);
    case ScalarOp::select: return std::min(of(1), of(2));
    case ScalarOp::mul: return std::min(most, of(0) * of(1));
    // x rem n = x - n * q, and x rem 0 = 0.
    case ScalarOp::rem:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::min:
    case ScalarOp::max: return std::min(of(0), of(1));
    default: return 1;
  }
}

}  // namespace

std::int64_t Divisors::of(ValueId id) const {
  const auto at = static_cast<std::size_t>(id);
  return at < known_.size() ? known_[at] : 1;
}

void Divisors::set(ValueId id, std::int64_t divisor) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= known_.size()) known_.resize(at + 1, 1);
  known_[at] = divisor;
}

void Divisors::tell(ValueId id, const Instruction& instruction) {
  if (is_integer(instruction.type.scalar)) set(id, divisor_of(instruction, *this));
}

void Divisors::tell_index(const Loop& loop) { set(loop.index, std::min(of(loop.lo), of(loop.step))); }

}  // namespace lathe::kernel
