#include "ir/kernel/verify/rules.h"

#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

void want(const Kernel& kernel, Type have, Type type, std::string_view what) {
  require(kernel, have == type, "type", "{} is {}, not {}", what, have, type);
}

namespace {
const BufferInfo& info(const Kernel& kernel, BufferId id) { return kernel.buffers[id]; }
}  // namespace

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
    require(kernel, count > 0 && count <= most_box_size, "map_box", "a box of {} elements", count);
  require(kernel, map.box[0] == swizzle_side && map.box_rows() % 8 == 0, "map_box", "a box of {} elements by {} rows",
          map.box[0], map.box_rows());
}

bool is_whole_warps(const Kernel& kernel, const Loop& loop) {
  const Instruction &lo = value(kernel, loop.lo), &hi = value(kernel, loop.hi), &step = value(kernel, loop.step);
  for (const Instruction* bound : {&lo, &hi, &step})
    if (bound->op != Opcode::constant) return false;
  return loop.kind == LoopKind::thread_x && lo.integer == 0 && step.integer == 1 && hi.integer > 0 &&
         hi.integer % warp_threads == 0;
}

}  // namespace lathe::kernel
