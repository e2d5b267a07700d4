#include "codegen/cuda/divisibility.h"

#include <algorithm>
#include <bit>

namespace lathe::cuda {

using kernel::Instruction;
using kernel::Opcode;
using kernel::ValueId;

namespace {

constexpr std::int64_t most = std::int64_t{1} << 30;

class Divisors {
 public:
  explicit Divisors(const kernel::Kernel& kernel) : kernel_(kernel), known_(kernel.values.size(), 1) {
    for (std::size_t i = 0; i < kernel.values.size(); ++i)
      if (kernel.values[i].op == Opcode::constant && is_integer(kernel.values[i].type.scalar))
        known_[i] = of_number(kernel.values[i].integer);
    block(kernel.body);
  }

  std::vector<std::int64_t> take() { return std::move(known_); }

 private:
  /// The largest power of two that divides n, as far as `most`.
  static std::int64_t of_number(std::int64_t n) {
    const auto bits = static_cast<std::uint64_t>(n) | static_cast<std::uint64_t>(most);
    return std::int64_t{1} << std::countr_zero(bits);
  }
  std::int64_t of(ValueId id) const { return known_[static_cast<std::size_t>(id)]; }

  void block(const kernel::Block& statements) {
    for (const kernel::Statement& s : statements) {
      if (const auto* compute = std::get_if<kernel::Compute>(&s.node)) {
        const auto at = static_cast<std::size_t>(compute->value);
        if (is_integer(kernel_.values[at].type.scalar)) known_[at] = of(kernel_.values[at]);
      } else if (const auto* loop = std::get_if<kernel::Loop>(&s.node)) {
        known_[static_cast<std::size_t>(loop->index)] = std::min(of(loop->lo), of(loop->step));
        block(loop->body);
      } else if (const auto* branch = std::get_if<kernel::Branch>(&s.node)) {
        block(branch->then_block);
        block(branch->else_block);
      } else if (const auto* ring = std::get_if<kernel::Ring>(&s.node)) {
        block(ring->body);
      } else if (const auto* stage = std::get_if<kernel::Stage>(&s.node)) {
        block(stage->fill);
        block(stage->use);
      }
    }
  }

  std::int64_t of(const Instruction& in) const {
    if (in.op == Opcode::broadcast) return of(in.args[0]);
    if (in.op != Opcode::scalar) return 1;
    const ScalarOp op = in.scalar_op;
    if (op == ScalarOp::neg || op == ScalarOp::abs) return of(in.args[0]);
    if (op == ScalarOp::select) return std::min(of(in.args[1]), of(in.args[2]));
    if (op == ScalarOp::mul) return std::min(most, of(in.args[0]) * of(in.args[1]));
    // x rem n = x - n * q, and x rem 0 = 0.
    const bool linear = op == ScalarOp::add || op == ScalarOp::sub || op == ScalarOp::min || op == ScalarOp::max ||
                        op == ScalarOp::rem;
    return linear ? std::min(of(in.args[0]), of(in.args[1])) : 1;
  }

  const kernel::Kernel& kernel_;
  std::vector<std::int64_t> known_;
};

}  // namespace

std::vector<std::int64_t> known_divisors(const kernel::Kernel& kernel) { return Divisors(kernel).take(); }

}  // namespace lathe::cuda
