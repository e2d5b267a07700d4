#include "ir/kernel/build/builder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/kernel/build/builder_checks.h"
#include "ir/kernel/build/simplify.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/verify/verifier.h"
#include "ir/support/error.h"

namespace lathe::kernel {

Builder::Builder(std::string name) {
  kernel_.name = std::move(name);
  blocks_.push_back(&kernel_.body);
}

void Builder::note(std::string text) { kernel_.notes.push_back(std::move(text)); }

Kernel Builder::finish() {
  require(blocks_.size() == 1, "finish inside a body");
  verify(kernel_);
  Kernel result = std::move(kernel_);
  kernel_ = {};
  constants_.clear();
  dims_.clear();
  return result;
}

Buffer Builder::buffer(std::string_view name, DType dtype, Access access, bool noalias) {
  require(!is_complex(dtype), "buffer {}: bind complex data as its real type", name);
  require(kernel_.parameter_count() == static_cast<int>(kernel_.buffers.size()), "buffer {} after an alloc", name);
  kernel_.buffers.push_back({.name = std::string(name), .dtype = dtype, .access = access, .noalias = noalias});
  return {static_cast<BufferId>(kernel_.buffers.size()) - 1, dtype};
}

Value Builder::dim(std::string_view name) {
  const auto found = std::find(kernel_.dims.begin(), kernel_.dims.end(), name);
  if (found != kernel_.dims.end()) return handle(dims_[found - kernel_.dims.begin()]);
  kernel_.dims.emplace_back(name);
  Value value =
      add_value({.op = Opcode::dim, .type = {i64, 1}, .integer = static_cast<std::int64_t>(kernel_.dims.size()) - 1});
  dims_.push_back(value.id);
  return value;
}

Value Builder::constant(DType dtype, double value, int lanes) {
  if (!is_float(dtype)) {
    require(value >= -0x1p63 && value < 0x1p63 && value == static_cast<double>(static_cast<std::int64_t>(value)),
            "the constant {} is not whole", value);
    return constant_int(dtype, static_cast<std::int64_t>(value), lanes);
  }
  const double rounded = round_to(dtype, value);
  const auto [entry, is_new] = constants_.try_emplace({dtype, lanes, 0, std::bit_cast<std::uint64_t>(rounded)}, none);
  if (is_new) entry->second = add_value({.op = Opcode::constant, .type = {dtype, lanes}, .real = rounded}).id;
  return handle(entry->second);
}

Value Builder::constant_int(DType dtype, std::int64_t value, int lanes) {
  if (is_float(dtype)) return constant(dtype, evaluate_cast(i64, dtype, {.integer = value}).real, lanes);
  require(wrap_to(dtype, value) == value, "the constant {} does not fit {}", value, lathe::name(dtype));
  const auto [entry, is_new] = constants_.try_emplace({dtype, lanes, value, 0}, none);
  if (is_new) entry->second = add_value({.op = Opcode::constant, .type = {dtype, lanes}, .integer = value}).id;
  return handle(entry->second);
}

void Builder::nested(Block& into, const std::function<void()>& body) {
  const std::size_t depth = blocks_.size();
  blocks_.push_back(&into);
  body();
  require(blocks_.size() == depth + 1, "unbalanced bodies");
  blocks_.pop_back();
}

void Builder::parallel_for(Bound lo, Bound hi, Bound step, const Body& body) {
  for_loop(lo, hi, step, body, LoopKind::parallel);
}

void Builder::for_loop(Bound lo, Bound hi, Bound step, const Body& body, LoopKind kind) {
  Loop loop{.kind = kind, .lo = bound(lo).id, .hi = bound(hi).id, .step = bound(step).id, .body = {}};
  const auto first = constant_value(handle(loop.lo)), last = constant_value(handle(loop.hi));
  const bool serial = kind == LoopKind::serial || kind == LoopKind::vector || kind == LoopKind::unroll;
  if (serial && first && last && *first >= *last) return;
  Value index = add_value({.op = Opcode::loop_index, .type = {i64, 1}});
  loop.index = index.id;
  divisors_.tell_index(loop);
  nested(loop.body, [&] { body(index); });
  emit({std::move(loop)});
}

void Builder::if_(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  require(condition.type == Type{boolean, 1}, "if_ wants a scalar boolean, not {}", condition.type);
  if (const auto known = constant_value(condition)) {
    if (*known) return then();
    if (otherwise) otherwise();
    return;
  }
  Branch branch{.condition = condition.id, .then_block = {}, .else_block = {}};
  nested(branch.then_block, then);
  if (otherwise) nested(branch.else_block, otherwise);
  if (branch.then_block.empty() && branch.else_block.empty()) return;
  emit({std::move(branch)});
}

void Builder::barrier() { emit({Barrier{}}); }

void Builder::check(Value condition, std::int64_t code) {
  require(condition.type == Type{boolean, 1}, "check wants a scalar boolean, not {}", condition.type);
  require(code > 0, "check wants a positive code, not {}", code);
  if (!is_constant(condition, 1)) emit({Check{condition.id, code}});
}

Var Builder::var(Type type, Value init) {
  require(init.type.scalar == type.scalar, "a variable of {} starts as {}", type, init.type);
  const Value value = broadcast(init, type.lanes);
  const auto id = static_cast<VarId>(kernel_.vars.size());
  kernel_.vars.push_back({type});
  emit({SetVar{.var = id, .value = value.id, .declares = true}});
  return {id, type};
}

Value Builder::get(Var var) { return append({.op = Opcode::get, .type = var.type, .integer = var.id}); }

void Builder::set(Var var, Value value) {
  require(value.type.scalar == var.type.scalar, "a variable of {} is set to {}", var.type, value.type);
  emit({SetVar{.var = var.id, .value = broadcast(value, var.type.lanes).id}});
}

Buffer Builder::alloc(DType dtype, std::int64_t count, Space space, std::string_view name) {
  require(space != Space::parameter && count > 0 && !is_complex(dtype), "a bad alloc of {} elements", count);
  kernel_.buffers.push_back(
      {.name = std::string(name), .dtype = dtype, .access = Access::read_write, .space = space, .count = count});
  const auto id = static_cast<BufferId>(kernel_.buffers.size()) - 1;
  emit({Alloc{id}});
  return {id, dtype};
}

Value Builder::fma(Value a, Value b, Value c) {
  const int lanes = std::max({a.type.lanes, b.type.lanes, c.type.lanes});
  a = broadcast(a, lanes), b = broadcast(b, lanes), c = broadcast(c, lanes);
  require(a.type == b.type && b.type == c.type && (a.type.scalar == f32 || a.type.scalar == f64), "fma of {}, {}, {}",
          a.type, b.type, c.type);
  return append({.op = Opcode::fma, .type = a.type, .args = {a.id, b.id, c.id}});
}

Value Builder::apply(ScalarOp op, std::vector<Value> args) {
  require(op != ScalarOp::cast && static_cast<int>(args.size()) == arity(op), "{} of {} operands", lathe::name(op),
          args.size());
  int lanes = 1;
  for (const Value& arg : args) lanes = std::max(lanes, arg.type.lanes);
  for (Value& arg : args) arg = broadcast(arg, lanes);
  const Type operand = args.back().type;
  const bool is_select = op == ScalarOp::select;
  if (is_select) require(args[0].type == Type{boolean, lanes}, "select by {}", args[0].type);
  for (std::size_t i = is_select ? 1 : 0; i < args.size(); ++i)
    require(args[i].type == operand, "{} of {} and {}", lathe::name(op), args[i].type, operand);
  require(is_defined(op, operand.scalar), "{} of {}", lathe::name(op), operand);
  Instruction instruction{.op = Opcode::scalar, .type = {result_dtype(op, operand.scalar), lanes}, .scalar_op = op};
  for (const Value& arg : args) instruction.args.push_back(arg.id);
  return append(std::move(instruction));
}

Value Builder::cast(Value value, DType dtype) {
  require(!is_complex(dtype), "cast to {}", lathe::name(dtype));
  if (value.type.scalar == dtype) return value;
  if (const Instruction& in = at(value); in.op == Opcode::scalar && in.scalar_op == ScalarOp::cast) {
    // Narrowing a widened float gives the original value: widening is exact.
    const Value from = handle(in.args[0]);
    const bool wider = size_in_bytes(value.type.scalar) > size_in_bytes(dtype);
    if (from.type.scalar == dtype && is_float(dtype) && is_float(value.type.scalar) && wider) return from;
  }
  return append(
      {.op = Opcode::scalar, .type = {dtype, value.type.lanes}, .scalar_op = ScalarOp::cast, .args = {value.id}});
}

bool Builder::is_constant(Value value) const { return at(value).op == Opcode::constant; }

bool Builder::is_constant(Value value, double equal_to) const {
  const Instruction& in = at(value);
  if (in.op != Opcode::constant) return false;
  return is_float(in.type.scalar) ? in.real == equal_to : static_cast<double>(in.integer) == equal_to;
}

std::optional<std::int64_t> Builder::constant_value(Value value) const {
  const Instruction& in = at(value);
  if (in.op != Opcode::constant || is_float(in.type.scalar)) return std::nullopt;
  return in.integer;
}

Value Builder::handle(ValueId id) { return {this, id, kernel_.values[id].type}; }

const Instruction& Builder::at(Value value) const {
  require(value.builder == this && value.id >= 0 && value.id < static_cast<int>(kernel_.values.size()),
          "an empty value, or one of another builder");
  return kernel_.values[value.id];
}

Value Builder::add_value(Instruction instruction) {
  const int lanes = instruction.type.lanes;
  require(instruction.type == no_value ||
              (lanes >= 1 && lanes <= 64 && std::has_single_bit(static_cast<unsigned>(lanes))),
          "{} lanes", lanes);
  const auto id = static_cast<ValueId>(kernel_.values.size());
  divisors_.tell(id, instruction);
  kernel_.values.push_back(std::move(instruction));
  return handle(id);
}

/// Simplifies the instruction; emits what remains into the current block.
Value Builder::append(Instruction instruction) {
  for (const ValueId arg : instruction.args) require(arg != none, "an empty value as operand");
  if (const ValueId simpler = Simplifier{*this}.simplify(instruction); simpler != none) return handle(simpler);
  const Value value = add_value(std::move(instruction));
  emit({Compute{value.id}});
  return value;
}

Value Builder::machine(Instruction operation) {
  for (const ValueId arg : operation.args) require(arg != none, "an empty value as operand");
  const bool gives_value = operation.type != no_value;
  const Value value = add_value(std::move(operation));
  emit({Compute{value.id}});
  return gives_value ? value : Value{};
}

void Builder::emit(Statement statement) { blocks_.back()->push_back(std::move(statement)); }

Value Builder::bound(Bound b) {
  Value value = b.value.builder ? b.value : index(b.number);
  require(value.type == Type{i64, 1}, "an index or bound of type {}", value.type);
  return value;
}

}  // namespace lathe::kernel
