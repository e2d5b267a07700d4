#include "ir/kernel/machine_rules.h"

namespace lathe::kernel {

void want(const Kernel& kernel, Type have, Type type, std::string_view what) {
  require(kernel, have == type, "type", "{} is {}, not {}", what, to_string(have), to_string(type));
}

namespace {

const BufferInfo& info(const Kernel& kernel, BufferId id) { return kernel.buffers[static_cast<std::size_t>(id)]; }
const Instruction& value(const Kernel& kernel, ValueId id) { return kernel.values[static_cast<std::size_t>(id)]; }

void verify_tile(const Kernel& kernel, const MatrixTile& tile, ValueId first, ValueId line) {
  const BufferInfo& buffer = info(kernel, tile.buffer);
  require(kernel, buffer.space == Space::shared, "mma_operands", "an mma of {}, which is not shared", buffer.name);
  require(kernel, buffer.dtype == bf16 || buffer.dtype == f16, "mma_types", "an mma of {}", name(buffer.dtype));
  require(kernel, tile.rows > 0 && tile.rows % 16 == 0, "mma_shape", "an mma of {} rows", tile.rows);
  for (const ValueId id : {first, line})
    require(kernel, value(kernel, id).op != Opcode::constant || value(kernel, id).integer % 8 == 0, "alignment",
            "an mma of {} by {}, which is no multiple of 8", buffer.name, value(kernel, id).integer);
}

void verify_mma(const Kernel& kernel, const Instruction& mma) {
  for (std::size_t i = 0; i < 4; ++i) want(kernel, value(kernel, mma.args[i]).type, {i64, 1}, "a place of an mma");
  want(kernel, value(kernel, mma.args[4]).type, mma.type, "the sums of an mma");
  verify_tile(kernel, mma.left, mma.args[0], mma.args[1]);
  verify_tile(kernel, mma.right, mma.args[2], mma.args[3]);
  const DType left = info(kernel, mma.left.buffer).dtype, right = info(kernel, mma.right.buffer).dtype;
  require(kernel, left == right, "mma_types", "an mma of {} and {}", name(left), name(right));
  require(kernel, mma.type == Type{f32, mma.left.rows * mma.right.rows / warp_threads}, "mma_shape",
          "an mma of {} x {} sums in {}", mma.left.rows, mma.right.rows, to_string(mma.type));
}

}  // namespace

void verify_group_mma(const Kernel& kernel, const GroupMma& s) {
  for (const auto& [tile, first] : {std::pair{s.left, s.left_first}, {s.right, s.right_first}}) {
    want(kernel, value(kernel, first).type, {i64, 1}, "a place of a group_mma");
    const BufferInfo& buffer = info(kernel, tile.buffer);
    require(kernel, buffer.space == Space::shared, "mma_operands", "a group_mma of {}, which is not shared",
            buffer.name);
    require(kernel,
            (buffer.dtype == bf16 || buffer.dtype == f16) && buffer.dtype == info(kernel, s.left.buffer).dtype,
            "mma_types", "a group_mma of {}", name(buffer.dtype));
    const Instruction& at = value(kernel, first);
    require(kernel, at.op != Opcode::constant || at.integer % (panel_alignment / 2) == 0, "alignment",
            "a group_mma of {}[{}], which is no multiple of {} bytes", buffer.name, at.integer, panel_alignment);
  }
  const Type type = kernel.vars[static_cast<std::size_t>(s.sums)].type;
  require(kernel,
          s.left.rows == group_rows && s.right.rows == group_columns &&
              type == Type{f32, group_rows * group_columns / group_threads},
          "mma_shape", "a group_mma of {} x {} sums in {}", s.left.rows, s.right.rows, to_string(type));
}

void verify_of_warp(const Kernel& kernel, const Instruction& in) {
  if (in.op == Opcode::mma) return verify_mma(kernel, in);
  want(kernel, in.type, {in.type.scalar, 1}, "a from_lane");
  want(kernel, value(kernel, in.args[0]).type, in.type, "the operand of from_lane");
  want(kernel, value(kernel, in.args[1]).type, {i64, 1}, "the lane of from_lane");
}

void verify_async_copy(const Kernel& kernel, const AsyncCopy& copy) {
  const BufferInfo &to = info(kernel, copy.to), &from = info(kernel, copy.from);
  require(kernel, to.space == Space::shared, "copy_buffers", "an async_copy to {}, which is not shared", to.name);
  require(kernel, from.space == Space::parameter && from.access == Access::read, "copy_buffers",
          "an async_copy from {}, which is no parameter that is only read", from.name);
  require(kernel, to.dtype == from.dtype && to.dtype != boolean, "copy_buffers", "an async_copy of {} to {}",
          name(from.dtype), name(to.dtype));
}

bool is_whole_warps(const Kernel& kernel, const Loop& loop) {
  const Instruction &lo = value(kernel, loop.lo), &hi = value(kernel, loop.hi), &step = value(kernel, loop.step);
  for (const Instruction* bound : {&lo, &hi, &step})
    if (bound->op != Opcode::constant) return false;
  return loop.kind == LoopKind::thread_x && lo.integer == 0 && step.integer == 1 && hi.integer > 0 &&
         hi.integer % warp_threads == 0;
}

}  // namespace lathe::kernel
