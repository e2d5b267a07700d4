#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/build/builder_checks.h"
#include "ir/kernel/intrinsics/region.h"
#include "ir/support/error.h"

namespace lathe::kernel {

/// Returns the mask as a boolean of `lanes` lanes, or an empty value if it is always true. Sets `never` if it is
/// always false.
Value Builder::checked_mask(Value mask, int lanes, bool& never) {
  never = false;
  if (!mask) return {};
  require(mask.type.scalar == boolean, "a mask of {}", mask.type);
  if (const auto known = constant_value(mask)) {
    never = *known == 0;
    return {};
  }
  mask = broadcast(mask, lanes);
  require(mask.type.lanes == lanes, "a mask of {} lanes for {}", mask.type.lanes, lanes);
  return mask;
}

Value Builder::load(Buffer buffer, Bound index, int lanes, Value mask, int alignment) {
  bool never;
  mask = checked_mask(mask, lanes, never);
  if (never) return constant(buffer.dtype, 0, lanes);
  return append({.op = Opcode::load,
                 .type = {buffer.dtype, lanes},
                 .args = {bound(index).id},
                 .buffer = buffer.id,
                 .mask = mask.id,
                 .alignment = alignment});
}

Value Builder::load_strided(Buffer buffer, Bound base, Bound stride, int lanes, Value mask) {
  bool never;
  if (lanes == 1 || is_constant(bound(stride), 1)) return load(buffer, base, lanes, mask);
  mask = checked_mask(mask, lanes, never);
  if (never) return constant(buffer.dtype, 0, lanes);
  return append({.op = Opcode::load_strided,
                 .type = {buffer.dtype, lanes},
                 .args = {bound(base).id, bound(stride).id},
                 .buffer = buffer.id,
                 .mask = mask.id});
}

Value Builder::gather(Buffer buffer, Value indices, Value mask) {
  require(indices.type.scalar == i64, "gather by {}", indices.type);
  if (indices.type.lanes == 1) return load(buffer, indices, 1, mask);
  bool never;
  mask = checked_mask(mask, indices.type.lanes, never);
  if (never) return constant(buffer.dtype, 0, indices.type.lanes);
  return append({.op = Opcode::gather,
                 .type = {buffer.dtype, indices.type.lanes},
                 .args = {indices.id},
                 .buffer = buffer.id,
                 .mask = mask.id});
}

void Builder::store(Buffer buffer, Bound index, Value value, Value mask, int alignment) {
  require(value.type.scalar == buffer.dtype, "a store of {} to a buffer of {}", value.type,
          lathe::name(buffer.dtype));
  bool never;
  mask = checked_mask(mask, value.type.lanes, never);
  if (never) return;
  emit({Store{.kind = StoreKind::contiguous,
              .buffer = buffer.id,
              .index = bound(index).id,
              .value = value.id,
              .mask = mask.id,
              .alignment = alignment}});
}

void Builder::stream(Buffer buffer, Bound index, Value value) {
  require(value.type.scalar == buffer.dtype, "a stream of {} to a buffer of {}", value.type,
          lathe::name(buffer.dtype));
  emit({Store{.kind = StoreKind::contiguous,
              .streams = true,
              .buffer = buffer.id,
              .index = bound(index).id,
              .value = value.id}});
}

void Builder::store_strided(Buffer buffer, Bound base, Bound stride, Value value, Value mask) {
  require(value.type.scalar == buffer.dtype, "a store of {} to a buffer of {}", value.type,
          lathe::name(buffer.dtype));
  if (value.type.lanes == 1 || is_constant(bound(stride), 1)) return store(buffer, base, value, mask);
  bool never;
  mask = checked_mask(mask, value.type.lanes, never);
  if (never) return;
  emit({Store{.kind = StoreKind::strided,
              .buffer = buffer.id,
              .index = bound(base).id,
              .stride = bound(stride).id,
              .value = value.id,
              .mask = mask.id}});
}

void Builder::scatter(Buffer buffer, Value indices, Value value, Value mask) {
  require(indices.type.scalar == i64, "scatter by {}", indices.type);
  value = broadcast(value, indices.type.lanes);
  require(value.type == Type{buffer.dtype, indices.type.lanes}, "a scatter of {} by {} to a buffer of {}", value.type,
          indices.type, lathe::name(buffer.dtype));
  if (indices.type.lanes == 1) return store(buffer, indices, value, mask);
  bool never;
  mask = checked_mask(mask, value.type.lanes, never);
  if (never) return;
  emit({Store{
      .kind = StoreKind::scatter, .buffer = buffer.id, .index = indices.id, .value = value.id, .mask = mask.id}});
}

void Builder::prefetch(Buffer buffer, Bound index) { emit({Prefetch{buffer.id, bound(index).id}}); }

int Builder::tensor_map(Buffer from, const Boxes& boxes) {
  TensorMap map{.from = from.id, .offset = bound(boxes.offset).id, .sizes = {}, .strides = {}, .box = {}};
  for (const Boxes::Dim& dim : boxes.dims) {
    if (!map.sizes.empty()) map.strides.push_back(bound(dim.stride).id);
    map.sizes.push_back(bound(dim.size).id);
    map.box.push_back(dim.box);
  }
  kernel_.maps.push_back(std::move(map));
  return static_cast<int>(kernel_.maps.size()) - 1;
}

void Builder::region(const IntrinsicRegionRecord& record, std::vector<std::int64_t> attributes,
                     const std::vector<Body>& bodies) {
  const Value index = record.index.empty() ? Value{} : add_value({.op = Opcode::loop_index, .type = {i64, 1}});
  IntrinsicRegion region{.record = &record, .attributes = std::move(attributes), .index = index.id, .bodies = {}};
  for (const Body& body : bodies) nested(region.bodies.emplace_back(), [&] { body(index); });
  emit({std::move(region)});
}

Value Builder::broadcast(Value scalar, int lanes) {
  if (at(scalar).type.lanes == lanes) return scalar;
  require(scalar.type.lanes == 1, "{} broadcast to {} lanes", scalar.type, lanes);
  return append({.op = Opcode::broadcast, .type = {scalar.type.scalar, lanes}, .args = {scalar.id}});
}

Value Builder::ramp(Value base, int lanes) { return ramp(base, lanes, constant_int(base.type.scalar, 1)); }

Value Builder::ramp(Value base, int lanes, Value stride) {
  require(base.type.lanes == 1 && base.type == stride.type && is_integer(base.type.scalar), "a ramp of {} by {}",
          base.type, stride.type);
  if (lanes == 1) return base;
  return append({.op = Opcode::ramp, .type = {base.type.scalar, lanes}, .args = {base.id, stride.id}});
}

Value Builder::reduce(ScalarOp op, Value vector) {
  const DType dtype = at(vector).type.scalar;
  const bool logical = op == ScalarOp::logical_and || op == ScalarOp::logical_or;
  const bool arithmetic = op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::min || op == ScalarOp::max;
  require(logical ? dtype == boolean : arithmetic && (is_integer(dtype) || dtype == f32 || dtype == f64),
          "a reduction by {} of {}", lathe::name(op), vector.type);
  if (vector.type.lanes == 1) return vector;
  return append({.op = Opcode::reduce, .type = {dtype, 1}, .scalar_op = op, .args = {vector.id}});
}

Value Builder::extract(Value vector, int lane) {
  require(lane >= 0 && lane < at(vector).type.lanes, "lane {} of {}", lane, vector.type);
  if (vector.type.lanes == 1) return vector;
  return append({.op = Opcode::extract, .type = {vector.type.scalar, 1}, .args = {vector.id}, .integer = lane});
}

Value Builder::shuffle(Value a, Value b, std::vector<int> lanes) {
  require(at(a).type == at(b).type, "a shuffle of {} and {}", a.type, b.type);
  for (const int lane : lanes) require(lane >= 0 && lane < 2 * a.type.lanes, "lane {} of a shuffle", lane);
  if (lanes.size() == 1) return lanes[0] < a.type.lanes ? extract(a, lanes[0]) : extract(b, lanes[0] - a.type.lanes);
  const auto count = static_cast<int>(lanes.size());
  return append(
      {.op = Opcode::shuffle, .type = {a.type.scalar, count}, .args = {a.id, b.id}, .lanes = std::move(lanes)});
}

Value Builder::concat(Value low, Value high) {
  std::vector<int> lanes(static_cast<std::size_t>(2 * low.type.lanes));
  std::iota(lanes.begin(), lanes.end(), 0);
  return shuffle(low, high, std::move(lanes));
}

Value Builder::slice(Value vector, int first, int count) {
  if (count == vector.type.lanes) return vector;
  std::vector<int> lanes(static_cast<std::size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return shuffle(vector, vector, std::move(lanes));
}

Value Builder::tail_mask(Value remaining, int lanes) {
  if (lanes == 1) return remaining > 0;
  // Clamped so that 32 bits suffice, which needs half the registers of an i64 comparison.
  const Value clamped = cast(max(min(remaining, lanes), 0), i32);
  return ramp(constant_int(i32, 0), lanes) < clamped;
}

Value Builder::ceil_div(Value a, Bound b) {
  const Value divisor = bound(b);
  return (a + (divisor - 1)) / divisor;
}

Value Builder::round_up(Value a, Bound b) { return ceil_div(a, b) * bound(b); }

namespace {
Value binary(ScalarOp op, Value a, Value b) {
  Builder* builder = a.builder ? a.builder : b.builder;
  require(builder != nullptr, "{} of empty values", lathe::name(op));
  return builder->apply(op, {a, b});
}
}  // namespace

Value operator+(Value a, Value b) { return binary(ScalarOp::add, a, b); }
Value operator-(Value a, Value b) { return binary(ScalarOp::sub, a, b); }
Value operator*(Value a, Value b) { return binary(ScalarOp::mul, a, b); }
Value operator/(Value a, Value b) { return binary(ScalarOp::div, a, b); }
Value operator%(Value a, Value b) { return binary(ScalarOp::rem, a, b); }
Value operator<(Value a, Value b) { return binary(ScalarOp::lt, a, b); }
Value operator<=(Value a, Value b) { return binary(ScalarOp::le, a, b); }
Value operator>(Value a, Value b) { return binary(ScalarOp::lt, b, a); }
Value operator>=(Value a, Value b) { return binary(ScalarOp::le, b, a); }
Value operator&&(Value a, Value b) { return binary(ScalarOp::logical_and, a, b); }
Value operator||(Value a, Value b) { return binary(ScalarOp::logical_or, a, b); }
Value equal(Value a, Value b) { return binary(ScalarOp::eq, a, b); }
Value not_equal(Value a, Value b) { return binary(ScalarOp::ne, a, b); }
Value min(Value a, Value b) { return binary(ScalarOp::min, a, b); }
Value max(Value a, Value b) { return binary(ScalarOp::max, a, b); }

Value logical_not(Value a) {
  require(a.builder != nullptr, "logical_not of an empty value");
  return a.builder->apply(ScalarOp::logical_not, {a});
}

Value operator-(Value a) {
  require(a.builder != nullptr, "neg of an empty value");
  return a.builder->apply(ScalarOp::neg, {a});
}

Value number_like(Value like, double value) {
  require(like.builder != nullptr, "number_like of an empty value");
  return like.builder->constant(like.type.scalar, value, like.type.lanes);
}

Value number_like(Value like, std::int64_t value) {
  require(like.builder != nullptr, "number_like of an empty value");
  return like.builder->constant_int(like.type.scalar, value, like.type.lanes);
}

}  // namespace lathe::kernel
