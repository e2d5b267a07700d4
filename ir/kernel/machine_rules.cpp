#include "ir/kernel/machine_rules.h"

#include <bit>

#include "ir/kernel/structure_rules.h"

namespace lathe::kernel {

void want(const Kernel& kernel, Type have, Type type, std::string_view what) {
  require(kernel, have == type, "type", "{} is {}, not {}", what, to_string(have), to_string(type));
}

namespace {

const BufferInfo& info(const Kernel& kernel, BufferId id) { return kernel.buffers[static_cast<std::size_t>(id)]; }
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

void verify_group_mma(const Kernel& kernel, const Wgmma& s) {
  const DType dtype = info(kernel, s.right.buffer).dtype;
  for (const auto& [tile, first] : {std::pair{s.left, s.left_first}, {s.right, s.right_first}}) {
    if (tile.buffer == none && s.left_value != none) continue;
    want(kernel, value(kernel, first).type, {i64, 1}, "a place of a wgmma");
    const BufferInfo& buffer = info(kernel, tile.buffer);
    require(kernel, buffer.space == Space::shared, "mma_operands", "a wgmma of {}, which is not shared", buffer.name);
    require(kernel, (buffer.dtype == bf16 || buffer.dtype == f16) && buffer.dtype == dtype, "mma_types",
            "a wgmma of {}", name(buffer.dtype));
    const Instruction& at = value(kernel, first);
    require(kernel, at.op != Opcode::constant || at.integer % (panel_alignment / 2) == 0, "alignment",
            "a wgmma of {}[{}], which is no multiple of {} bytes", buffer.name, at.integer, panel_alignment);
  }
  const Type type = kernel.vars[static_cast<std::size_t>(s.sums)].type;
  const int columns = s.right.rows;
  require(kernel,
          s.left.rows == wgmma_rows && columns >= 16 && columns <= wgmma_columns &&
              std::has_single_bit(static_cast<unsigned>(columns)) &&
              type == Type{f32, wgmma_rows * columns / warpgroup_threads},
          "mma_shape", "a wgmma of {} x {} sums in {}", s.left.rows, columns, to_string(type));
  require(kernel, s.depth >= 16 && s.depth <= wgmma_depth && s.depth % 16 == 0, "mma_shape", "a wgmma {} deep",
          s.depth);
  if (s.left_value == none) return;
  want(kernel, value(kernel, s.left_value).type, {dtype, wgmma_rows * s.depth / warpgroup_threads},
       "the left operand of a wgmma");
  require(kernel, value(kernel, s.left_value).op != Opcode::get, "mma_operands",
          "a wgmma of a variable, which may be set while it is under way");
}

void verify_of_bf16(const Kernel& kernel, const Instruction& in) {
  const auto arg = [&](std::size_t i) { return value(kernel, in.args[i]).type; };
  const int lanes = in.type.lanes;
  if (in.op == Opcode::dot_pairs) {
    for (const std::size_t i : {0, 1}) want(kernel, arg(i), {bf16, 2 * lanes}, "an operand of dot_pairs");
    want(kernel, arg(2), in.type, "the sum of dot_pairs");
    return want(kernel, in.type, {f32, lanes}, "a dot_pairs");
  }
  for (const std::size_t i : {0, 1}) want(kernel, arg(i), {f32, lanes / 2}, "an operand of bf16_slices");
  want(kernel, in.type, {bf16, arg(0).lanes * 2}, "a bf16_slices");
  require(kernel, in.integer >= 0 && in.integer < tile_slices, "tile_slices", "slice {} of an f32", in.integer);
}

void verify_tile_mma(const Kernel& kernel, const TileMma& s) {
  for (const TileMma::Matrix& m : {s.sums, s.left, s.right})
    for (const ValueId id : {m.first, m.line})
      want(kernel, value(kernel, id).type, {i64, 1}, "a place of a tile_mma");
  want(kernel, value(kernel, s.depth).type, {i64, 1}, "the depth of a tile_mma");
  const BufferInfo& sums = info(kernel, s.sums.buffer);
  require(kernel, sums.space != Space::shared && sums.dtype == f32, "tile_operands",
          "a tile_mma into {}, which is shared or no f32", sums.name);
  for (const BufferId operand : {s.left.buffer, s.right.buffer}) {
    const BufferInfo& buffer = info(kernel, operand);
    require(kernel, buffer.dtype == bf16 && buffer.space != Space::shared, "tile_operands",
            "a tile_mma of {}, which is shared or no bf16", buffer.name);
  }
  if (s.prefetch != none) want(kernel, value(kernel, s.prefetch).type, {i64, 1}, "what a tile_mma asks for ahead");
  constexpr int most_ahead = 256;
  require(kernel, s.prefetch == none ? s.prefetch_lines == 0 : s.prefetch_lines > 0 && s.prefetch_lines <= most_ahead,
          "tile_prefetch", "a tile_mma that prefetches {} lines", s.prefetch_lines);
  for (const int side : {s.rows, s.columns})
    require(kernel, side == tile_side || side == 2 * tile_side, "tile_shape", "a tile_mma of {} x {} sums", s.rows,
            s.columns);
  const Instruction& depth = value(kernel, s.depth);
  require(kernel, depth.op != Opcode::constant || depth.integer % tile_depth == 0, "tile_shape",
          "a tile_mma over {}, which is no multiple of {}", depth.integer, tile_depth);
  const auto has_line = [&](const TileMma::Matrix& m, std::int64_t line) {
    const Instruction& given = value(kernel, m.line);
    return given.op == Opcode::constant && given.integer == line;
  };
  require(kernel, !s.sliced || (has_line(s.left, tile_depth) && has_line(s.right, 2 * tile_depth)), "tile_slices",
          "a tile_mma of slices whose lines are not {} and {}", tile_depth, 2 * tile_depth);
}

void verify_of_warp(const Kernel& kernel, const Instruction& in) {
  if (in.op == Opcode::mma) return verify_mma(kernel, in);
  if (in.op == Opcode::from_consumers) {
    want(kernel, in.type, {boolean, 1}, "a from_consumers");
    return want(kernel, value(kernel, in.args[0]).type, in.type, "the operand of from_consumers");
  }
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

void verify_map(const Kernel& kernel, const TensorMap& map) {
  require(kernel, map.from >= 0 && map.from < kernel.parameter_count(), "map_tensor", "a map of no parameter");
  const BufferInfo& from = info(kernel, map.from);
  require(kernel, from.access == Access::read && (from.dtype == bf16 || from.dtype == f16), "map_tensor",
          "a map of {}, which is written or no bf16 or f16", from.name);
  std::vector<ValueId> numbers = map.strides;
  numbers.push_back(map.offset);
  const auto multiples = static_cast<std::ptrdiff_t>(numbers.size());
  numbers.insert(numbers.end(), map.sizes.begin(), map.sizes.end());
  for (auto id = numbers.begin(); id != numbers.end(); ++id) {
    require(kernel, *id >= 0 && *id < static_cast<int>(kernel.values.size()), "value_range",
            "value {} does not exist", *id);
    const Instruction& in = value(kernel, *id);
    require(kernel, (in.op == Opcode::constant || in.op == Opcode::dim) && in.type == Type{i64, 1}, "map_tensor",
            "a map by what is neither a constant nor a dim");
    require(kernel, in.op == Opcode::dim || id - numbers.begin() >= multiples || in.integer % 8 == 0, "alignment",
            "a map of {} by {}, no multiple of 16 bytes", from.name, in.integer);
  }
  const std::size_t dims = map.sizes.size();
  require(kernel, dims >= 2 && dims <= most_map_dims && map.strides.size() == dims - 1 && map.box.size() == dims,
          "map_box", "a map of {} dims", dims);
  for (const int count : map.box)
    require(kernel, count > 0 && count <= most_box_lines, "map_box", "a box of {} elements", count);
  require(kernel, map.box[0] == panel_side && map.lines() % 8 == 0, "map_box", "a box of {} elements by {} lines",
          map.box[0], map.lines());
}

void verify_copy_box(const Kernel& kernel, const CopyBox& copy) {
  require(kernel, copy.map >= 0 && copy.map < static_cast<int>(kernel.maps.size()), "map_tensor",
          "map {} does not exist", copy.map);
  const TensorMap& map = kernel.maps[static_cast<std::size_t>(copy.map)];
  const BufferInfo& to = info(kernel, copy.to);
  require(kernel, to.space == Space::shared && to.dtype == info(kernel, map.from).dtype, "copy_buffers",
          "a copy_box to {}, which is not shared or of another type", to.name);
  require(kernel, copy.at.size() == map.sizes.size(), "arity", "a copy_box by {} coordinates", copy.at.size());
  want(kernel, value(kernel, copy.to_index).type, {i64, 1}, "the index of a copy_box");
  for (const ValueId id : copy.at) want(kernel, value(kernel, id).type, {i64, 1}, "a coordinate of a copy_box");
  const Instruction& to_index = value(kernel, copy.to_index);
  require(kernel, to_index.op != Opcode::constant || to_index.integer % (panel_alignment / 2) == 0, "alignment",
          "a copy_box to {}[{}], which is no multiple of {} bytes", to.name, to_index.integer, panel_alignment);
}

bool is_whole_warps(const Kernel& kernel, const Loop& loop) {
  const Instruction &lo = value(kernel, loop.lo), &hi = value(kernel, loop.hi), &step = value(kernel, loop.step);
  for (const Instruction* bound : {&lo, &hi, &step})
    if (bound->op != Opcode::constant) return false;
  return loop.kind == LoopKind::thread_x && lo.integer == 0 && step.integer == 1 && hi.integer > 0 &&
         hi.integer % warp_threads == 0;
}

}  // namespace lathe::kernel
