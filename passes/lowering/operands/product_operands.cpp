#include "passes/lowering/operands/product_operands.h"

#include <algorithm>

namespace lathe {

namespace {

/// The number of adjacent elements that a load has along the dims; 0 if neighbours are not adjacent. A dim of unknown
/// size is long.
std::int64_t contiguous_run(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::int64_t run = 1;
  for (auto d = dims.rbegin(); d != dims.rend() && run < most; ++d) {
    if (domain[*d].is(1)) continue;
    if (!form.coefficients[*d].is(run)) break;
    run *= std::min(domain[*d].value().value_or(most), most);
  }
  return run == 1 ? 0 : run;
}

/// Returns contiguous_run(); half of it if the stride is 2, as in windows with a step, because two vectors are then
/// loaded for one.
std::int64_t loadable_run(const Linear& form, const std::vector<int>& dims, const Shape& domain) {
  if (!LoopIndices::merged_stride(form, dims, domain).is(2)) return contiguous_run(form, dims, domain);
  Linear halved = form;
  for (const int d : dims)
    if (const auto half = form.coefficients[d].divided_by(2)) halved.coefficients[d] = *half;
  return contiguous_run(halved, dims, domain) / 2;
}

/// The axis along which more of the operand's loads are contiguous. Windows are contiguous along both; the longer run
/// decides.
LaneAxis contiguous_axis(const ProductOperand& o) {
  int votes = 0;
  const ElementwiseProgram& program = o.operand.program;
  for (const ElementwiseInstruction& i : program.code) {
    if (i.kind != ElementwiseInstruction::Kind::load) continue;
    const std::int64_t along_rows = loadable_run(i.form, o.rows, program.domain),
                       along_k = loadable_run(i.form, o.k, program.domain);
    if (along_rows != along_k) votes += along_rows > along_k ? 1 : -1;
  }
  return votes > 0 ? LaneAxis::row : LaneAxis::k;
}

/// Whether a single-load operand has rows that are contiguous along k, with a fixed stride.
bool lies_in_rows(const ProductOperand& o) {
  const ElementwiseProgram& program = o.operand.program;
  const Linear& form = program[0].form;
  if (!merges(form, o.rows, program.domain) || !merges(form, o.k, program.domain)) return false;
  for (auto d = o.k.rbegin(); d != o.k.rend(); ++d)
    if (!program.domain[*d].is(1)) return form.coefficients[*d].is(1);
  return false;
}

/// Matches bytes times a factor, as in quantized weights. Bytes are at most 255, so the sum of a run without the
/// factor is finite if the other operand is below the largest number / (255 run).
ProductOperand::Scaled scaled_numbers(const ProductOperand& o) {
  const ElementwiseProgram& program = o.operand.program;
  const ElementwiseInstruction& element = program[o.operand.result];
  if (!is_scalar(element, ScalarOp::mul) || element.dtype != o.compute || !is_float(o.compute)) return {};
  const auto is_bytes = [&](int i) {
    return is_scalar(program[i], ScalarOp::cast) && is_byte(program[program[i].args[0]].dtype);
  };
  const bool swap = !is_bytes(element.args[0]);
  const int numbers = element.args[swap ? 1 : 0], factor = element.args[swap ? 0 : 1];
  if (!is_bytes(numbers)) return {};
  std::int64_t run = 1;
  for (auto d = o.k.rbegin(); d != o.k.rend(); ++d) {
    const auto size = program.domain[*d].value();
    if (!size || (program.depends[at(factor)] >> *d & 1) != 0) break;
    run *= *size;
  }
  const bool loads = program[program[numbers].args[0]].kind == ElementwiseInstruction::Kind::load;
  return run > 1 ? ProductOperand::Scaled{run, numbers, factor, loads} : ProductOperand::Scaled{};
}

}  // namespace

kernel::Value ProductOperand::load(int instruction, ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                                   kernel::Value at_batch, kernel::Value row, kernel::Value at_k, LaneAxis along,
                                   int lanes, kernel::Value mask) const {
  kernel::Builder& b = emitter.context().builder;
  const bool along_row = along == LaneAxis::row;
  ElementwiseEmitter::Scope scope(
      emitter, {{batch, at_batch, 1}, {rows, row, along_row ? lanes : 1}, {k, at_k, along_row ? 1 : lanes}}, mask,
      &top);
  return b.broadcast(b.cast(emitter.emit(instruction, scope), compute), lanes);
}

kernel::Builder::Rows ProductOperand::rows_in_memory(ElementwiseEmitter& emitter,
                                                     const ElementwiseEmitter::Scope& top, kernel::Value at_batch,
                                                     kernel::Value row, kernel::Value at_k) const {
  ElementwiseEmitter::Scope scope(emitter, {{batch, at_batch, 1}, {rows, row, 2}, {k, at_k, 1}}, kernel::Value{},
                                  &top);
  const ElementwiseInstruction& load = operand.program[operand.result];
  const LoopIndices::Position at = scope.indices.position(load.form);
  LATHE_ASSERT(has_rows && !at.vector);
  KernelContext& context = emitter.context();
  return {emitter.storage(load.buffer), at.base, context.dim(at.stride)};
}

void ProductOperand::prefetch(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                              kernel::Value at_batch, kernel::Value row, kernel::Value at_k, int lanes) const {
  ElementwiseEmitter::Scope scope(emitter, {{batch, at_batch, 1}, {rows, row, lanes}, {k, at_k, 1}}, kernel::Value{},
                                  &top);
  emitter.prefetch(operand.result, scope);
}

void ProductOperand::prefetch_along_k(ElementwiseEmitter& emitter, const ElementwiseEmitter::Scope& top,
                                      kernel::Value at_batch, kernel::Value row, kernel::Value at_k,
                                      int lanes) const {
  ElementwiseEmitter::Scope scope(emitter, {{batch, at_batch, 1}, {rows, row, 1}, {k, at_k, lanes}}, kernel::Value{},
                                  &top);
  emitter.prefetch(plain ? operand.result : operand.program[scaled.numbers].args[0], scope);
}

ProductOperands::ProductOperands(const LoweringContext& lowering, const ir::Node& contraction)
    : dtype(contraction.type.dtype),
      compute(compute_type(contraction.type.dtype)),
      lowering_(lowering),
      node_(contraction),
      roles_(contraction.op->as<ir::Contraction>()->roles(contraction)) {
  const std::string lhs_free = roles_.lhs_free();
  const bool swap = !lhs_free.empty() && !roles_.out.empty() && roles_.out.back() == lhs_free.back();
  left = operand(swap ? 1 : 0, swap ? roles_.rhs_free() : lhs_free);
  right = operand(swap ? 0 : 1, swap ? lhs_free : roles_.rhs_free());
  batch = size_of(roles_.batch()), m = size_of(left.free), n = size_of(right.free), k = size_of(roles_.contracted());
  batch_dims = out_dims(roles_.batch()), m_dims = out_dims(left.free), n_dims = out_dims(right.free);
}

ProductOperand ProductOperands::operand(int which, std::string free) const {
  ProductOperand o;
  o.free = std::move(free);
  Shape domain;
  std::string order;
  const auto extend = [&](const std::string& labels, std::vector<int>& dims) {
    for (const char label : labels) {
      dims.push_back(domain.rank());
      domain.push_back(size_of({&label, 1}));
      order += label;
    }
  };
  extend(roles_.batch(), o.batch);
  extend(o.free, o.rows);
  extend(roles_.contracted(), o.k);
  std::vector<int> dims;
  for (const char label : which == 0 ? roles_.lhs : roles_.rhs) dims.push_back(static_cast<int>(order.find(label)));
  const auto row = std::ranges::find_if(o.k, [&](int d) { return !domain[d].is(1); });
  o.operand = operand_program(lowering_.graph, lowering_.plan, node_.operands[which], dims, domain,
                              row == o.k.end() ? -1 : *row);
  o.compute = compute;
  o.axis = contiguous_axis(o);
  const ElementwiseProgram& program = o.operand.program;
  const bool load = program.size() == 1 && program[0].kind == ElementwiseInstruction::Kind::load;
  o.plain = load && program[0].dtype == compute;
  if (o.plain) o.run = contiguous_run(program[0].form, o.axis == LaneAxis::k ? o.k : o.rows, program.domain);
  o.shared = std::ranges::none_of(o.batch, [&](int d) {
    return !domain[d].is(1) && (program.depends[static_cast<std::size_t>(o.operand.result)] >> d & 1) != 0;
  });
  o.scaled = scaled_numbers(o);
  o.has_rows = load && program[0].dtype == bf16 && lies_in_rows(o);
  return o;
}

std::vector<int> ProductOperands::out_dims(const std::string& labels) const {
  std::vector<int> dims;
  for (const char label : labels) dims.push_back(static_cast<int>(roles_.out.find(label)));
  return dims;
}

}  // namespace lathe
