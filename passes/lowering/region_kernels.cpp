#include "passes/lowering/region_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "passes/lowering/traffic.h"

namespace lathe {

namespace {

/// Whether a stored value occupies only a part of the memory that it is placed in.
bool is_part(const LoweringContext& lowering, ir::ValueId id) {
  const auto elements = [&](ir::ValueId value) { return lowering.graph[value].type.shape.numel(); };
  const ir::ValueId base = lowering.plan.placement[id].base;
  return base != id && elements(base) != elements(id);
}

}  // namespace

void declare_buffers(KernelContext& context, const std::vector<const ElementwiseProgram*>& programs,
                     const LoweringContext& lowering) {
  struct Use {
    DType dtype = f32;
    bool reads = false, writes = false, is_part = false;
  };
  std::vector<int> order;
  std::map<int, Use> uses;
  const auto use = [&](ir::ValueId node, DType dtype) -> Use& {
    const int buffer = lowering.buffer_of(node);
    if (!uses.contains(buffer)) order.push_back(buffer);
    uses[buffer].dtype = dtype;
    return uses[buffer];
  };
  for (const ElementwiseProgram* program : programs) {
    for (const ElementwiseInstruction& i : program->code)
      if (i.buffer.valid()) use(i.buffer, i.dtype).reads = true;
    // A kernel with reductions may load, in a later loop over the row, values that it stored in an earlier one. A sum
    // over outer dims accumulates into its output.
    const bool reads_back =
        std::any_of(program->code.begin(), program->code.end(), [](const ElementwiseInstruction& i) {
          return i.kind == ElementwiseInstruction::Kind::reduce || i.kind == ElementwiseInstruction::Kind::column;
        });
    for (const ElementwiseStore& store : program->stores) {
      Use& stored = use(store.node, lowering.graph[store.node].type.dtype);
      stored.writes = true;
      stored.reads = stored.reads || reads_back;
      stored.is_part = is_part(lowering, store.node);
    }
  }
  for (const int buffer : order) {
    const auto& [dtype, reads, writes, is_part] = uses[buffer];
    context.declare(buffer, dtype, reads, writes);
    if (is_part) context.writes_part_of(buffer);
  }
  context.touches(touched_elements(programs, lowering));
  context.reads_rows(rows_read(programs, lowering));
}

kernel::Value reduction_identity(kernel::Builder& b, const ElementwiseInstruction& reduce) {
  const DType dtype = compute_type(reduce.dtype);
  const double identity = reduce.value.real();
  if (!std::isinf(identity) || is_float(dtype)) return b.constant(dtype, identity);
  const bool low = identity < 0;
  if (dtype == i32)
    return b.constant_int(i32,
                          low ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max());
  if (dtype == boolean) return b.constant_int(boolean, low ? 0 : 1);
  return b.constant_int(i64,
                        low ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max());
}

const VectorRegisters& LoweringContext::vectors() const {
  return std::visit([](const auto& info) -> const VectorRegisters& { return info.vectors; }, machine);
}

int program_lanes(const ElementwiseProgram& program, const VectorRegisters& vectors) {
  const bool has_f64 = std::any_of(program.code.begin(), program.code.end(),
                                   [](const ElementwiseInstruction& i) { return i.dtype == f64; });
  return vectors.lanes(has_f64 ? f64 : f32);
}

void vector_loop(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int lanes,
                 const std::function<void(kernel::Value, kernel::Value)>& body) {
  const kernel::Value extent = hi - lo;
  if (lanes == 1) {
    b.for_loop(lo, hi, 1, [&](kernel::Value i) { body(i, {}); });
    return;
  }
  const auto known = b.constant_value(extent);
  const kernel::Value whole = extent - extent % lanes;
  const kernel::Value split = lo + whole;
  if (!known || *known >= lanes) b.for_loop(lo, split, lanes, [&](kernel::Value i) { body(i, {}); });
  if (!known || *known % lanes != 0)
    b.for_loop(split, hi, lanes, [&](kernel::Value i) { body(i, b.tail_mask(hi - i, lanes)); });
}

Dim scatter_positions_size(const ir::Graph& graph, ir::ValueId scatter) {
  const ir::Node& node = graph[scatter];
  return start_of_positions(node) + graph[node.operands[0]].type.shape.numel().unnamed();
}

}  // namespace lathe
