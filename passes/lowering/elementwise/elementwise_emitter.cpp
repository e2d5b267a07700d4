#include "passes/lowering/elementwise/elementwise_emitter.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/fast_math.h"
#include "ir/support/post_order.h"
#include "passes/lowering/attention/softmax_divisor.h"
#include "passes/lowering/elementwise/philox_emitter.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

DType compute_type(DType dtype) {
  if (is_byte(dtype)) return i32;
  return dtype == bf16 || dtype == f16 ? f32 : dtype;
}

kernel::Value rounded(kernel::Builder& b, kernel::Value value, DType dtype) {
  const DType compute = compute_type(dtype);
  return compute == dtype ? value : b.cast(b.cast(value, dtype), compute);
}

namespace {
kernel::Value constant(kernel::Builder& b, const ElementwiseInstruction& i) {
  const DType compute = compute_type(i.dtype);
  return is_float(compute) ? b.constant(compute, i.value.real()) : b.constant_int(compute, i.value.integer());
}

/// The conjunction of two masks. An empty mask means true.
kernel::Value both(kernel::Value a, kernel::Value b) {
  if (a.id == kernel::none) return b;
  if (b.id == kernel::none) return a;
  return a && b;
}

/// Returns the mask that an access needs. An access that is the same for all vectors needs none, because some lane of
/// some vector is inside the domain. A single vector may have no lane inside: micro-panels are padded to whole
/// vectors.
kernel::Value lane_mask(const LoopIndices::Position& at, const ElementwiseEmitter::Scope& scope) {
  const bool varies = at.vector || !at.stride.is(0) || at.differs_by_vector;
  return varies || scope.indices.lanes() == 1 ? scope.mask : kernel::Value{};
}

/// Computes a / b, correctly rounded, if 0 <= a <= 1 <= b or either is NaN (for a below 2^-100: within one unit in
/// the last place). The reciprocal depends on b alone and can be hoisted out of a loop over a. With fma the remainder
/// of a times the reciprocal is exact and corrects its rounding error (Markstein, IBM J. Res. Dev. 34, 1990). A
/// division of 16 lanes takes 16 cycles on Intel cores.
kernel::Value divided_by_row_value(kernel::Builder& b, kernel::Value dividend, kernel::Value divisor) {
  const kernel::Value reciprocal = b.constant(f32, 1) / divisor;
  const kernel::Value quotient = dividend * reciprocal;
  const kernel::Value remainder = b.fma(b.apply(ScalarOp::neg, {quotient}), divisor, dividend);
  return b.fma(remainder, reciprocal, quotient);
}

/// Returns the arguments that must have a value before the instruction is emitted: all or none.
std::span<const int> args_before(const ElementwiseInstruction& i) {
  const bool waits = i.kind == Kind::scalar || i.kind == Kind::checked || i.kind == Kind::gather ||
                     i.kind == Kind::row_sum || i.kind == Kind::random;
  return waits ? std::span<const int>(i.args) : std::span<const int>{};
}

/// Shorter vectors would need a library call for fma.
bool has_fma(kernel::Value vector) { return vector.type.scalar == f32 && vector.type.lanes >= 8; }
}  // namespace

std::optional<kernel::Value> ElementwiseEmitter::Scope::find(int instruction) const {
  if (const auto at = values_.find(instruction); at != values_.end()) return at->second;
  return outer ? outer->find(instruction) : std::nullopt;
}

kernel::Value ElementwiseEmitter::emit(int instruction, Scope& scope) {
  post_order(
      instruction, [&](int i) { return args_before(program_[i]); }, [&](int i) { return !scope.find(i); },
      [&](int i) {
        scope.bind(i, compute(program_[i], scope));
        return true;
      });
  return *scope.find(instruction);
}

void ElementwiseEmitter::hoist(Scope& scope, std::uint64_t varying) {
  std::vector<bool> waits;
  for (int i = 0; i < program_.size(); ++i) {
    const ElementwiseInstruction& in = program_[i];
    waits.push_back(in.kind == Kind::reduce || in.kind == Kind::column || in.kind == Kind::accumulator ||
                    std::any_of(in.args.begin(), in.args.end(), [&](int a) { return bool(waits[a]); }));
    if (!waits.back() && (program_.depends[i] & varying) == 0) emit(i, scope);
  }
}

kernel::Value ElementwiseEmitter::compute(const ElementwiseInstruction& i, Scope& scope) {
  kernel::Builder& b = context_.builder;
  switch (i.kind) {
    case Kind::constant: return constant(b, i);
    case Kind::index: return scope.indices.value(i.form);
    case Kind::in_bounds: {
      const kernel::Value at = scope.indices.value(i.form);
      return b.index(0) <= at && at < context_.dim(i.size);
    }
    case Kind::load: return load(i, scope);
    case Kind::checked: return check_index(i, scope), emit(i.args[0], scope);
    case Kind::gather: return gather(i, scope);
    case Kind::row_sum: return row_sum(i, scope);
    case Kind::random: return random(i, scope);
    case Kind::scalar: return scalar(i, scope);
    case Kind::reduce:
    case Kind::column:
    case Kind::accumulator: break;
  }
  throw InternalError("a reduction or accumulator was read before it was bound");
}

kernel::Value ElementwiseEmitter::load_at(kernel::Buffer buffer, const LoopIndices::Position& at, int lanes,
                                          kernel::Value mask) {
  kernel::Builder& b = context_.builder;
  kernel::Value value;
  if (at.vector) {
    value = at.runs.empty() ? b.gather(buffer, *at.vector, mask) : load_runs(buffer, at.runs, lanes, mask);
  } else if (at.stride.is(0) || lanes == 1) {
    if (mask && mask.type.lanes > 1) mask = b.reduce(ScalarOp::logical_or, mask);
    value = b.load(buffer, at.base, 1, mask);
  } else if (at.stride.is(1)) {
    value = b.load(buffer, at.base, lanes, mask);
  } else {
    value = b.load_strided(buffer, at.base, context_.dim(at.stride), lanes, mask);
  }
  return b.cast(value, compute_type(buffer.dtype));
}

kernel::Value ElementwiseEmitter::load_runs(kernel::Buffer buffer, const std::vector<LoopIndices::Run>& runs,
                                            int lanes, kernel::Value mask) {
  kernel::Builder& b = context_.builder;
  std::optional<kernel::Value> value, earlier;  // earlier: the lanes that have a value
  for (const LoopIndices::Run& run : runs) {
    const kernel::Value until = b.tail_mask(run.end, lanes);
    const kernel::Value inside = earlier ? until && kernel::logical_not(*earlier) : until;
    const kernel::Value active = both(inside, mask);
    const kernel::Value loaded = run.stride == 1
                                     ? b.load(buffer, run.base, lanes, active)
                                     : b.load_strided(buffer, run.base, b.index(run.stride), lanes, active);
    value = value ? b.select(*earlier, *value, loaded) : loaded;
    earlier = until;
  }
  return *value;
}

kernel::Value ElementwiseEmitter::load(const ElementwiseInstruction& i, Scope& scope) {
  const LoopIndices::Position at = scope.indices.position(i.form);
  kernel::Value mask = lane_mask(at, scope);
  if (!i.args.empty()) mask = both(mask, emit(i.args[0], scope));
  return load_at(context_.buffer(buffer_of_(i.buffer)), at, scope.indices.lanes(), mask);
}

/// Raises an error unless args[0] is in [0, size) in all active lanes. Returns the lanes that are active and in
/// range.
kernel::Value ElementwiseEmitter::check_index(const ElementwiseInstruction& i, Scope& scope) {
  kernel::Builder& b = context_.builder;
  const kernel::Value index = emit(i.args[0], scope);
  kernel::Value wanted = index.type.lanes > 1 || scope.indices.lanes() == 1 ? scope.mask : kernel::Value{};
  const bool differs_by_vector = (program_.depends[at(i.args[0])] & scope.indices.lane_dims()) != 0;
  if (scope.mask && !wanted && differs_by_vector) wanted = b.reduce(ScalarOp::logical_or, scope.mask);
  if (i.args.size() > 1) wanted = both(wanted, emit(i.args[1], scope));
  const kernel::Value inside = b.index(0) <= index && index < context_.dim(i.size);
  const kernel::Value fine = wanted ? inside || kernel::logical_not(wanted) : inside;
  const std::int64_t code = context_.check_code(fmt::format("an index is not in [0, {})", i.size.to_string()));
  b.check(fine.type.lanes > 1 ? b.reduce(ScalarOp::logical_and, fine) : fine, code);
  return both(inside, wanted);
}

LoopIndices::Position ElementwiseEmitter::further(LoopIndices::Position at, kernel::Value offset, const Linear& form,
                                                  Scope& scope) {
  if (offset.type.lanes > 1) {
    const kernel::Value here = at.vector ? *at.vector : scope.indices.value(form);
    at.vector = here + offset;
    at.runs.clear();
  } else if (at.vector) {
    at.vector = *at.vector + offset;
    for (LoopIndices::Run& run : at.runs) run.base = run.base + offset;
  } else {
    at.base = at.base + offset;
  }
  return at;
}

kernel::Value ElementwiseEmitter::gather(const ElementwiseInstruction& i, Scope& scope) {
  const kernel::Value wanted = check_index(i, scope), row = emit(i.args[0], scope);
  const kernel::Value offset = row * context_.dim(i.stride);
  const LoopIndices::Position at = further(scope.indices.position(i.form), offset, i.form, scope);
  const kernel::Value mask = both(lane_mask(at, scope), wanted);
  return load_at(context_.buffer(buffer_of_(i.buffer)), at, scope.indices.lanes(), mask);
}

/// Sums one row's updates in order. If lanes belong to several rows, loops up to the length of the longest list.
kernel::Value ElementwiseEmitter::row_sum(const ElementwiseInstruction& i, Scope& scope) {
  kernel::Builder& b = context_.builder;
  const kernel::Buffer positions = context_.buffer(buffer_of_(i.node)),
                       updates = context_.buffer(buffer_of_(i.buffer));
  const kernel::Value first = emit(i.args[0], scope), last = emit(i.args[1], scope);
  const kernel::Value order = context_.dim(i.size), stride = context_.dim(i.stride);
  const LoopIndices::Position start = scope.indices.position(i.form);
  const bool rows = first.type.lanes > 1;
  const int lanes = scope.indices.lanes();
  const kernel::Var sum = b.var(b.constant(compute_type(i.dtype), 0, lanes));
  const auto add = [&](kernel::Value listed, kernel::Value inside) {
    const kernel::Value t = rows ? b.gather(positions, order + listed, inside) : b.load(positions, order + listed);
    const LoopIndices::Position at = further(start, t * stride, i.form, scope);
    const kernel::Value update = load_at(updates, at, lanes, both(lane_mask(at, scope), inside));
    const kernel::Value next = rounded(b, b.get(sum) + b.broadcast(update, lanes), i.dtype);
    b.set(sum, inside ? b.select(inside, next, b.get(sum)) : next);
  };
  if (rows)
    b.for_loop(0, b.reduce(ScalarOp::max, last - first), 1,
               [&](kernel::Value n) { add(first + n, first + n < last); });
  else
    b.for_loop(first, last, 1, [&](kernel::Value listed) { add(listed, {}); });
  return b.get(sum);
}

kernel::Value ElementwiseEmitter::random(const ElementwiseInstruction& i, Scope& scope) {
  const kernel::Value seed = emit(i.args[0], scope), step = emit(i.args[1], scope);
  // Passed as an argument so that layers with different streams share code.
  const kernel::Value salt = context_.argument(stream_salt(i.stream));
  const kernel::Value number = i.args.size() > 2 ? emit(i.args[2], scope) : scope.indices.value(i.form);
  kernel::Builder& b = context_.builder;
  return rounded(b, emit_uniform(b, seed, step, salt, number, i.dtype), i.dtype);
}

kernel::Value ElementwiseEmitter::scalar(const ElementwiseInstruction& i, Scope& scope) {
  kernel::Builder& b = context_.builder;
  std::vector<kernel::Value> args;
  for (const int arg : i.args) args.push_back(emit(arg, scope));
  if (i.op == ScalarOp::cast) {
    // Floats saturate at the limits of the dtype itself. Values that f32 cannot represent are rounded once.
    const bool at_once = is_byte(i.dtype) || (i.dtype != compute_type(i.dtype) && args[0].type.scalar != f32);
    if (at_once) return b.cast(b.cast(args[0], i.dtype), compute_type(i.dtype));
    return round(b.cast(args[0], compute_type(i.dtype)), i.dtype);
  }
  const kernel::Value value = apply(i, std::move(args));
  return i.dtype == boolean || i.op == ScalarOp::select ? value : round(value, i.dtype);
}

kernel::Value ElementwiseEmitter::apply(const ElementwiseInstruction& i, std::vector<kernel::Value> args) {
  kernel::Builder& b = context_.builder;
  if (approximates_ && compute_type(i.dtype) == f32) {
    if (i.op == ScalarOp::exp) return kernel::fast_exp(b, args[0]);
    if (i.op == ScalarOp::div && program_[i.args[1]].kind == Kind::constant)
      return args[0] * b.constant(f32, 1 / program_[i.args[1]].value.real());
    if (i.op == ScalarOp::div) return kernel::fast_div(b, args[0], args[1]);
  }
  const bool corrects = is_softmax_weight(program_, i) && has_fma(args[0]);
  return corrects ? divided_by_row_value(b, args[0], args[1]) : b.apply(i.op, std::move(args));
}

kernel::Value ElementwiseEmitter::round(kernel::Value value, DType dtype) {
  return rounds_at_the_end_ ? value : rounded(context_.builder, value, dtype);
}

void ElementwiseEmitter::store(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope) {
  store(node, dtype, form, value, scope, false);
}

void ElementwiseEmitter::stream(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value,
                                Scope& scope) {
  store(node, dtype, form, value, scope, true);
}

void ElementwiseEmitter::store(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope,
                               bool streams) {
  kernel::Builder& b = context_.builder;
  if (compute_type(dtype) != dtype) value = b.cast(value, dtype);
  const kernel::Buffer buffer = context_.buffer(buffer_of_(node));
  const LoopIndices::Position at = scope.indices.position(form);
  const int lanes = scope.indices.lanes();
  if (at.vector) {
    b.scatter(buffer, *at.vector, b.broadcast(value, lanes), scope.mask);
  } else if (lanes == 1 || at.stride.is(0)) {
    // One element for all lanes. If any lane is inside the domain, lane 0 is.
    const auto first = [&](kernel::Value v) { return v && v.type.lanes > 1 ? b.extract(v, 0) : v; };
    b.store(buffer, at.base, first(value), first(scope.mask));
  } else if (at.stride.is(1) && streams && !scope.mask) {
    b.stream(buffer, at.base, b.broadcast(value, lanes));
  } else if (at.stride.is(1)) {
    b.store(buffer, at.base, b.broadcast(value, lanes), scope.mask);
  } else {
    b.store_strided(buffer, at.base, context_.dim(at.stride), b.broadcast(value, lanes), scope.mask);
  }
}

void ElementwiseEmitter::store_all(Scope& scope) {
  for (const ElementwiseStore& s : program_.stores) emit(s.value, scope);
  for (const ElementwiseStore& s : program_.stores)
    store(s.node, program_[s.value].dtype, s.form, emit(s.value, scope), scope);
}

void ElementwiseEmitter::prefetch(ir::ValueId node, const Linear& form, Scope& scope) {
  const LoopIndices::Position at = scope.indices.position(form);
  if (!at.vector && at.stride.is(1)) context_.builder.prefetch(context_.buffer(buffer_of_(node)), at.base);
}

void ElementwiseEmitter::prefetch(int instruction, Scope& scope) {
  const ElementwiseInstruction& i = program_[instruction];
  if (i.kind == Kind::load) return prefetch(i.buffer, i.form, scope);
  LATHE_ASSERT(i.kind == Kind::gather);
  const LoopIndices::Position at = scope.indices.position(i.form);
  const kernel::Value row = emit(i.args[0], scope);
  if (at.vector || !at.stride.is(1) || row.type.lanes > 1) return;
  context_.builder.prefetch(context_.buffer(buffer_of_(i.buffer)), at.base + row * context_.dim(i.stride));
}

kernel::Value ElementwiseEmitter::reload(ir::ValueId node, const Linear& form, Scope& scope) {
  const LoopIndices::Position at = scope.indices.position(form);
  return load_at(context_.buffer(buffer_of_(node)), at, scope.indices.lanes(), scope.mask);
}

}  // namespace lathe
