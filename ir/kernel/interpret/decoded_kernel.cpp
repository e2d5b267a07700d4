#include "ir/kernel/interpret/decoded_kernel.h"

#include <algorithm>

#include "ir/kernel/interpret/lane_functions.h"
#include "ir/kernel/interpret/thread_order.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

std::uint16_t count(Type type) { return static_cast<std::uint16_t>(type.lanes); }

AccessPattern pattern_of(Opcode op) {
  if (op == Opcode::gather) return AccessPattern::by_lane;
  return op == Opcode::load_strided ? AccessPattern::strided : AccessPattern::contiguous;
}

AccessPattern pattern_of(StoreKind kind) {
  if (kind == StoreKind::scatter) return AccessPattern::by_lane;
  return kind == StoreKind::strided ? AccessPattern::strided : AccessPattern::contiguous;
}

/// Sets the operands of a memory access.
void set_access(DecodedStatement& decoded, const LaneLayout& layout, ValueId index, ValueId stride, ValueId mask) {
  decoded.a = layout.value(index);
  if (stride != none) decoded.b = layout.value(stride);
  if ((decoded.masked = mask != none)) decoded.c = layout.value(mask);
}

/// Sets the operands of a computation. Missing ones equal the first, so that functions of one to three operands have
/// one form.
void set_operands(DecodedStatement& decoded, const Kernel& kernel, const LaneLayout& layout, const Instruction& in) {
  if (in.op == Opcode::get) {
    decoded.a = layout.var(static_cast<VarId>(in.integer));
    return;
  }
  const auto operand = [&](std::size_t i) { return layout.value(in.args[i < in.args.size() ? i : 0]); };
  decoded.a = operand(0), decoded.b = operand(1), decoded.c = operand(2);
  decoded.operand_lanes = count(kernel.values[static_cast<std::size_t>(in.args[0])].type);
  if (in.op == Opcode::extract) decoded.a += static_cast<std::uint32_t>(in.integer);
}

}  // namespace

DecodedStatement decode_value(const Kernel& kernel, const LaneLayout& layout, ValueId id) {
  const Instruction& in = kernel.values[static_cast<std::size_t>(id)];
  DecodedStatement decoded{.lanes = count(in.type), .out = layout.value(id), .instruction = &in};
  switch (in.op) {
    case Opcode::constant:
    case Opcode::dim:
    case Opcode::loop_index: return decoded;
    case Opcode::load:
    case Opcode::load_strided:
    case Opcode::gather:
      decoded.kind = DecodedKind::load;
      decoded.buffer = in.buffer;
      decoded.pattern = pattern_of(in.op);
      decoded.alignment = in.alignment;
      set_access(decoded, layout, in.args[0], in.op == Opcode::load_strided ? in.args[1] : none, in.mask);
      return decoded;
    case Opcode::intrinsic:
      decoded.kind = DecodedKind::intrinsic;
      decoded.alone = false;
      return decoded;
    case Opcode::scalar:
    case Opcode::fma:
    case Opcode::broadcast:
    case Opcode::ramp:
    case Opcode::reduce:
    case Opcode::extract:
    case Opcode::shuffle:
    case Opcode::get:
      decoded.kind = DecodedKind::compute;
      decoded.function = lane_function(kernel, in);
      set_operands(decoded, kernel, layout, in);
  }
  return decoded;
}

/// Decodes blocks recursively.
class DecodedKernel::BlockDecoder {
 public:
  BlockDecoder(DecodedKernel& result, const Kernel& kernel, const LaneLayout& layout)
      : result_(result), kernel_(kernel), layout_(layout) {}

  const DecodedBlock* block(const Block& statements) {
    DecodedBlock& result = result_.storage_.emplace_back();
    result_.blocks_[&statements] = &result;
    result.reserve(statements.size());
    const std::size_t outside = defined_.size(), private_outside = private_scratch_;
    for (const Statement& s : statements) {
      DecodedStatement decoded = std::visit([&](const auto& node) { return decode(node); }, s.node);
      decoded.source = &s;
      result.push_back(decoded);
    }
    defined_.resize(outside);
    private_scratch_ = private_outside;
    mark_thread_order(kernel_, result);
    return &result;
  }

 private:
  DecodedStatement decode(const Compute& s) {
    const DecodedStatement decoded = decode_value(kernel_, layout_, s.value);
    define(decoded.out, decoded.lanes);
    return decoded;
  }

  DecodedStatement decode(const Store& s) {
    DecodedStatement decoded{.kind = DecodedKind::store,
                             .pattern = pattern_of(s.kind),
                             .lanes = count(kernel_.values[static_cast<std::size_t>(s.value)].type),
                             .alignment = s.alignment,
                             .buffer = s.buffer,
                             .out = layout_.value(s.value)};
    set_access(decoded, layout_, s.index, s.kind == StoreKind::strided ? s.stride : none, s.mask);
    return decoded;
  }

  DecodedStatement decode(const SetVar& s) {
    const DecodedStatement decoded{.kind = DecodedKind::compute,
                                   .lanes = count(kernel_.vars[static_cast<std::size_t>(s.var)].type),
                                   .out = layout_.var(s.var),
                                   .a = layout_.value(s.value),
                                   .function = copy_lanes};
    if (s.declares) define(decoded.out, decoded.lanes);
    return decoded;
  }

  DecodedStatement decode(const Prefetch&) { return {}; }
  DecodedStatement decode(const Alloc& s) {
    if (kernel_.buffers[static_cast<std::size_t>(s.buffer)].space != Space::shared) ++private_scratch_;
    return {.kind = DecodedKind::allocate, .buffer = s.buffer};
  }
  DecodedStatement decode(const Barrier&) { return {.kind = DecodedKind::barrier, .alone = false}; }
  DecodedStatement decode(const Check& s) {
    return {.kind = DecodedKind::check, .alone = false, .a = layout_.value(s.condition)};
  }

  DecodedStatement decode(const Branch& s) {
    DecodedNested& branch = nest();
    branch.body = block(s.then_block);
    branch.else_body = block(s.else_block);
    return {.kind = DecodedKind::branch, .a = layout_.value(s.condition), .nested = &branch};
  }

  DecodedStatement decode(const IntrinsicRegion& s) {
    const std::size_t outside = defined_.size();
    if (s.index != none) define(layout_.value(s.index), 1);
    for (const Block& body : s.bodies) block(body);
    defined_.resize(outside);
    return {.kind = DecodedKind::region, .alone = false};
  }

  DecodedStatement decode(const Loop& s) {
    DecodedNested& loop = nest();
    loop.kind = s.kind;
    loop.is_collective = runs_together(kernel_, s);
    if (s.kind >= LoopKind::thread_x) loop.inherited = defined_;
    const DecodedStatement decoded{.kind = DecodedKind::loop,
                                   .alone = !loop.is_collective,
                                   .out = layout_.value(s.index),
                                   .a = layout_.value(s.lo),
                                   .b = layout_.value(s.hi),
                                   .c = layout_.value(s.step),
                                   .nested = &loop};
    const std::size_t outside = defined_.size();
    define(decoded.out, 1);
    loop.body = block(s.body);
    // Iterations on one thread share its scratch that is allocated before the loop.
    loop.in_any_order = private_scratch_ == 0 &&
                        std::all_of(loop.body->begin(), loop.body->end(), [](const DecodedStatement& inside) {
                          return inside.alone && inside.in_any_order;
                        });
    defined_.resize(outside);
    return decoded;
  }

  DecodedNested& nest() {
    DecodedNested& nested = result_.nested_.emplace_back();
    nested.number = result_.nested_.size() - 1;
    return nested;
  }

  void define(std::size_t first, int lanes) { defined_.push_back({first, static_cast<std::size_t>(lanes)}); }

  DecodedKernel& result_;
  const Kernel& kernel_;
  const LaneLayout& layout_;
  std::vector<LaneRange> defined_;   // in scope
  std::size_t private_scratch_ = 0;  // allocations in scope that threads do not share
};

DecodedKernel::DecodedKernel(const Kernel& kernel, const LaneLayout& layout) {
  BlockDecoder(*this, kernel, layout).block(kernel.body);
}

}  // namespace lathe::kernel
