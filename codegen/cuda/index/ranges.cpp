#include "codegen/cuda/index/ranges.h"

#include <algorithm>
#include <array>
#include <optional>

#include "codegen/cuda/mapping.h"
#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

using kernel::Instruction;
using kernel::Kernel;
using kernel::Opcode;
using kernel::ValueId;

namespace {

class Analysis {
 public:
  Analysis(const Kernel& kernel, const GpuInfo& gpu, std::span<const Range> dims)
      : kernel_(kernel), gpu_(gpu), dims_(dims) {
    all_.values.resize(kernel.values.size());
    all_.counters.resize(kernel.values.size());
    vars_.resize(kernel.vars.size());
    for (std::size_t i = 0; i < kernel.values.size(); ++i) {
      const Instruction& in = kernel.values[i];
      if (in.op == Opcode::constant) all_.values[i] = {in.integer, in.integer};
      if (in.op == Opcode::dim) all_.values[i] = dims_[in.integer];
    }
  }

  /// Iterates to a fixed point, because a variable set in a loop affects the loop. Variables that still grow after
  /// `precise_rounds` rounds are widened to the full range.
  Ranges run() {
    constexpr int precise_rounds = 3;
    for (int round = 0; round == 0 || changed_; ++round) {
      changed_ = false;
      widens_ = round >= precise_rounds;
      kernel::for_each_statement(kernel_.body, [this](const kernel::Statement& s) {
        std::visit([this](const auto& node) { update(node); }, s.node);
      });
    }
    for (const auto& var : vars_) all_.vars.push_back(var.value_or(Range{}));
    return std::move(all_);
  }

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  const Range& of(ValueId id) const { return all_.values[at(id)]; }
  const Instruction& info(ValueId id) const { return kernel_.values[at(id)]; }

  template <class Node>
  void update(const Node&) {}
  void update(const kernel::Compute& s) {
    if (info(s.value).type.scalar == i64) all_.values[at(s.value)] = compute(info(s.value));
  }
  void update(const kernel::IntrinsicRegion& s) {
    if (s.index != kernel::none)
      all_.values[at(s.index)] = all_.counters[at(s.index)] = s.record->index_range(s, kernel_);
  }

  void update(const kernel::SetVar& s) {
    if (kernel_.vars[at(s.var)].type.scalar != i64) return;
    std::optional<Range>& var = vars_[at(s.var)];
    const Range grown = var ? join(*var, of(s.value)) : of(s.value);
    if (var == grown) return;
    changed_ = true;
    var = var && widens_ ? Range{} : grown;
  }

  void update(const kernel::Loop& s) {
    const Range &lo = of(s.lo), &hi = of(s.hi), &step = of(s.step);
    const Range last = sub(hi, {1, 1});
    Range index{lo.lo, std::max(lo.lo, last.hi)},
        counter = join(lo, add(join(lo, last), {0, std::max<std::int64_t>(step.hi, 0)}));
    if (is_block(s.kind) || is_thread(s.kind)) {
      const std::int64_t workers = is_thread(s.kind) ? gpu_.most_block_threads : gpu_.most_blocks[0];
      const Range first = add(lo, mul(step, {0, workers - 1}));
      if (first != Range{}) index.hi = std::min(index.hi, std::max(first.hi, index.lo));
      // There are as many blocks as iterations, unless another loop has more.
      counter = is_thread(s.kind) || !is_alone(s) ? join(lo, first) : join(lo, index);
    }
    all_.values[at(s.index)] = index;
    all_.counters[at(s.index)] = counter;
  }

  bool is_alone(const kernel::Loop& loop) const {
    int loops = 0;
    kernel::for_each_statement(kernel_.body, [&](const kernel::Statement& s) {
      const auto* other = std::get_if<kernel::Loop>(&s.node);
      loops += other && other->kind == loop.kind;
    });
    return loops == 1;
  }

  Range compute(const Instruction& in) const {
    const auto arg = [&](std::size_t i) { return of(in.args[i]); };
    switch (in.op) {
      case Opcode::broadcast:
      case Opcode::extract: return arg(0);
      case Opcode::intrinsic: return kernel::record_of(in)->passes_on ? arg(0) : Range{};
      case Opcode::shuffle: return join(arg(0), arg(1));
      case Opcode::ramp: return add(arg(0), mul(arg(1), {0, in.type.lanes - 1}));
      case Opcode::get: return vars_[at(static_cast<int>(in.integer))].value_or(Range{});
      case Opcode::scalar: {
        if (in.scalar_op == ScalarOp::cast) return cast_from(info(in.args[0]).type.scalar);
        std::array<Range, 3> args;
        for (std::size_t i = 0; i < in.args.size(); ++i) args[i] = arg(i);
        return range_of(in.scalar_op, std::span(args).first(in.args.size()));
      }
      case Opcode::constant:
      case Opcode::dim:
      case Opcode::loop_index:
      case Opcode::fma:
      case Opcode::reduce:
      case Opcode::load:
      case Opcode::load_strided:
      case Opcode::gather: break;
    }
    return {};
  }

  static Range cast_from(DType from) {
    if (from == boolean) return {0, 1};
    if (from == i32 || is_byte(from)) return {integer_limits(from).lowest, integer_limits(from).highest};
    return {};
  }

  const Kernel& kernel_;
  const GpuInfo& gpu_;
  std::span<const Range> dims_;
  Ranges all_;
  std::vector<std::optional<Range>> vars_;  // nullopt: not set yet
  bool changed_ = false, widens_ = false;
};

}  // namespace

Ranges ranges(const Kernel& kernel, const GpuInfo& gpu, std::span<const Range> dims) {
  return Analysis(kernel, gpu, dims).run();
}

}  // namespace lathe::cuda
