#include "passes/lowering/attention/attention_operand.h"

#include <algorithm>

#include "ir/hardware/memory_units.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

/// Returns whether every load is contiguous along the innermost of `dims` whose size is not 1.
bool contiguous_along(const ElementwiseProgram& program, const std::vector<int>& dims) {
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    if (program.domain[*d].is(1)) continue;
    return std::all_of(program.code.begin(), program.code.end(), [&](const ElementwiseInstruction& i) {
      return i.kind != Kind::load || i.form.coefficients[*d].is(1);
    });
  }
  return true;
}

}  // namespace

AttentionOperand attention_operand(const LoweringContext& lowering, const Region& region, ir::ValueId value,
                                   const std::vector<int>& dims, const std::vector<int>& outer_dims) {
  AttentionOperand found;
  found.value = value;
  const Shape& shape = lowering.graph[value].type.shape;
  const int columns = region.domain.rank() - 1;
  found.by_column = std::any_of(dims.begin(), dims.end(), [&](int d) { return d >= columns; });
  Shape domain;
  std::vector<int> domain_dims(dims.size(), -1);  // by operand dim: the matching dim of `domain`
  const auto extend = [&](std::vector<int>& into, const Dim& size) {
    into.push_back(domain.rank());
    domain.push_back(size.unnamed());
    return into.back();
  };
  for (const int d : outer_dims) {
    const int at = extend(found.outer, region.domain[d]);
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == d) domain_dims[i] = at;
  }
  for (int d = 0; d < region.domain.rank(); ++d) {
    if (found.by_column ? d < columns : d != region.attention().row) continue;
    const int at = extend(found.position, region.domain[d]);
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == d) domain_dims[i] = at;
  }
  for (int n = 0; n < static_cast<int>(dims.size()); ++n)
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == AttentionOperand::depth_dim - n) {
        domain_dims[i] = extend(found.depth, shape[static_cast<int>(i)]);
        found.size = found.size * shape[static_cast<int>(i)].unnamed();
      }
  found.code = operand_program(lowering.graph, lowering.plan, value, domain_dims, domain);
  const ElementwiseProgram& program = found.code.program;
  found.plain = program.size() == 1 && program[0].kind == Kind::load && contiguous_along(program, found.depth) &&
                merges(program[0].form, found.depth, program.domain);
  return found;
}

bool same_elements(const AttentionOperand& a, const AttentionOperand& b) {
  return a.by_column == b.by_column && a.code.program.domain == b.code.program.domain &&
         a.code.program.code == b.code.program.code && a.code.result == b.code.result;
}

OperandLoader::OperandLoader(KernelContext& context, const LoweringContext& lowering, const AttentionOperand& operand,
                             DType compute)
    : operand_(operand),
      compute_(compute),
      buffer_of_(lowering.buffer_of),
      emitter_(context, operand_.code.program, lowering.buffer_of),
      top_(emitter_, {}) {}

kernel::Value OperandLoader::load(kernel::Value outer, kernel::Value position, kernel::Value depth, LaneAxis axis,
                                  int lanes, kernel::Value mask) {
  kernel::Builder& b = emitter_.context().builder;
  const bool along_position = axis == LaneAxis::row;
  ElementwiseEmitter::Scope scope(emitter_,
                                  {{operand_.outer, outer, 1},
                                   {operand_.position, position, along_position ? lanes : 1},
                                   {operand_.depth, depth, along_position ? 1 : lanes}},
                                  mask, &top_);
  return b.broadcast(b.cast(emitter_.emit(operand_.code.result, scope), compute_), lanes);
}

OperandLoader::Element OperandLoader::element(kernel::Value outer, kernel::Value position, kernel::Value depth) {
  const ElementwiseInstruction& load = operand_.code.program[0];
  LATHE_ASSERT(operand_.code.program.size() == 1 && load.kind == Kind::load);
  ElementwiseEmitter::Scope scope(
      emitter_, {{operand_.outer, outer, 1}, {operand_.position, position, 1}, {operand_.depth, depth, 1}}, {},
      &top_);
  return {context().buffer(buffer_of_(load.buffer)), scope.indices.position(load.form).base};
}

void OperandLoader::prefetch(kernel::Value outer, kernel::Value position) {
  each_cache_line([&](const ElementwiseInstruction& load, int line) {
    context().builder.for_loop(0, context().dim(operand_.size), line,
                               [&](kernel::Value d) { prefetch(load, outer, position, d, line); });
  });
}

void OperandLoader::prefetch(kernel::Value outer, kernel::Value position, int depth, int count) {
  each_cache_line([&](const ElementwiseInstruction& load, int line) {
    for (int d = (depth + line - 1) / line * line; d < depth + count; d += line)
      prefetch(load, outer, position, context().builder.index(d), line);
  });
}

/// Calls body(load, elements per cache line) for each direct load that is contiguous along the depth.
void OperandLoader::each_cache_line(const std::function<void(const ElementwiseInstruction& load, int line)>& body) {
  if (axis() != LaneAxis::k) return;
  for (const ElementwiseInstruction& i : operand_.code.program.code)
    if (i.kind == Kind::load && i.args.empty()) body(i, static_cast<int>(cache_line_bytes / size_in_bytes(i.dtype)));
}

void OperandLoader::prefetch(const ElementwiseInstruction& load, kernel::Value outer, kernel::Value position,
                             kernel::Value depth, int line) {
  ElementwiseEmitter::Scope scope(
      emitter_, {{operand_.outer, outer, 1}, {operand_.position, position, 1}, {operand_.depth, depth, line}}, {},
      &top_);
  emitter_.prefetch(load.buffer, load.form, scope);
}

LoadOperand OperandLoader::callback() {
  return [this](kernel::Value outer, kernel::Value position, kernel::Value depth, LaneAxis axis, int lanes,
                kernel::Value mask) { return load(outer, position, depth, axis, lanes, mask); };
}

namespace {
LaneAxis other(LaneAxis axis) { return axis == LaneAxis::k ? LaneAxis::row : LaneAxis::k; }
}  // namespace

LaneAxis OperandLoader::transposed_axis() const { return other(axis()); }

LoadOperand OperandLoader::transposed_callback() {
  return [this](kernel::Value outer, kernel::Value depth, kernel::Value position, LaneAxis axis, int lanes,
                kernel::Value mask) { return load(outer, position, depth, other(axis), lanes, mask); };
}

LaneAxis OperandLoader::axis() const {
  return !contiguous_along(operand_.code.program, operand_.depth) &&
                 contiguous_along(operand_.code.program, operand_.position)
             ? LaneAxis::row
             : LaneAxis::k;
}

}  // namespace lathe
