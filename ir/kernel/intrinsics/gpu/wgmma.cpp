#include "ir/kernel/intrinsics/gpu/wgmma.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/sums_rules.h"

namespace lathe::kernel {

AccumulatorPosition wgmma_sum_position(int thread, int index) {
  AccumulatorPosition position = accumulator_position(wgmma_columns, thread % warp_threads, index);
  position.row += thread / warp_threads * (wgmma_rows * warp_threads / warpgroup_threads);
  return position;
}

constinit const IntrinsicRecord wgmma_record = intrinsic_record<Wgmma>({.name = "wgmma",
                                                                        .args = {2, 2},
                                                                        .buffers = {1, 2},
                                                                        .vars = {1, 1},
                                                                        .attributes = 5,
                                                                        .together = Together::warpgroup,
                                                                        .sums = OfSums::adds_later,
                                                                        .shared_alignment = swizzle_alignment});

/// Values: the first tile of the right operand, then the first tile of the left operand or the left value. Buffers:
/// the right operand's, then the left tile's.
Wgmma Wgmma::of(const Instruction& in) {
  const IntrinsicOp& op = *in.machine;
  Wgmma s{.sums = op.vars[0], .depth = static_cast<int>(op.attributes[0]), .starts = op.attributes[4] != 0};
  s.right = {.buffer = op.buffers[0].id,
             .first = in.args[0],
             .rows = static_cast<int>(op.attributes[1]),
             .transposed = op.attributes[2] != 0};
  s.left = {.rows = wgmma_rows, .transposed = op.attributes[3] != 0};
  if (op.buffers.size() > 1)
    s.left.buffer = op.buffers[1].id, s.left.first = in.args[1];
  else
    s.left_value = in.args[1];
  return s;
}

Instruction Wgmma::instruction() const {
  IntrinsicOp op{.record = &wgmma_record,
                 .buffers = {{right.buffer, Access::read}},
                 .vars = {sums},
                 .attributes = {depth, right.rows, right.transposed, left.transposed, starts}};
  if (left_value == none) op.buffers.push_back({left.buffer, Access::read});
  return intrinsic_instruction(std::move(op), {right.first, left_value == none ? left.first : left_value});
}

void Wgmma::verify(const IntrinsicRules& rules) const {
  const DType dtype = rules.buffer(right.buffer).dtype;
  for (const SharedOperand& m : {left, right}) {
    if (m.buffer == none) continue;
    rules.want(m.first, {i64, 1}, "an offset of a wgmma");
    const BufferInfo& buffer = rules.buffer(m.buffer);
    rules.require(buffer.space == Space::shared, "mma_operands", "a wgmma of {}, which is not shared", buffer.name);
    rules.require((buffer.dtype == bf16 || buffer.dtype == f16) && buffer.dtype == dtype, "mma_types",
                  "a wgmma of {}", name(buffer.dtype));
    const Instruction& at = rules.value(m.first);
    rules.require(at.op != Opcode::constant || at.integer % (swizzle_alignment / 2) == 0, "alignment",
                  "a wgmma of {}[{}], which is no multiple of {} bytes", buffer.name, at.integer, swizzle_alignment);
  }
  const Type type = rules.kernel.vars[sums].type;
  const int columns = right.rows;
  rules.require(columns >= 16 && columns <= wgmma_columns && std::has_single_bit(static_cast<unsigned>(columns)) &&
                    type == Type{f32, wgmma_rows * columns / warpgroup_threads},
                "mma_shape", "a wgmma of {} x {} sums in {}", wgmma_rows, columns, type);
  rules.require(depth >= 16 && depth <= wgmma_depth && depth % 16 == 0, "mma_shape", "a wgmma {} deep", depth);
  if (left_value != none) {
    rules.want(left_value, {dtype, wgmma_rows * depth / warpgroup_threads}, "the left operand of a wgmma");
    rules.require(rules.value(left_value).op != Opcode::get, "mma_operands",
                  "a wgmma of a variable, which may be set while it is under way");
    rules.require(!starts, "mma_operands", "a wgmma of a held left operand that starts its sums");
  }
  rules.require(rules.context.branches == 0 && rules.context.is_in(stage_record, Stage::consuming),
                "warpgroup_context", "a wgmma in a branch or outside the use of a stage");
}

std::string Wgmma::text(const IntrinsicText& text) const {
  const auto tiles = [&](const SharedOperand& m) {
    return fmt::format("{}[{}]{}", text.buffer(m.buffer), text.value(m.first), m.transposed ? "^T" : "");
  };
  std::string result =
      fmt::format("wgmma {} {} {}, {}", text.var(sums),
                  starts ? "=" : "+=", left_value == none ? tiles(left) : text.value(left_value), tiles(right));
  if (depth != wgmma_depth) result += fmt::format(" depth {}", depth);
  return result;
}

Wgmma Wgmma::parse(IntrinsicReader& in) {
  const auto tiles = [&](int rows) {
    SharedOperand m{.buffer = in.buffer(), .first = in.element(), .rows = rows};
    m.transposed = in.accept("^");
    if (m.transposed) in.expect("T");
    return m;
  };
  Wgmma product{.sums = in.var(), .starts = in.accept("=")};
  if (!product.starts) in.expect("+=");
  if (in.at_access())
    product.left = tiles(wgmma_rows);
  else
    product.left_value = in.value();
  in.expect(",");
  product.right = tiles(2 * in.type(product.sums).lanes);
  if (in.accept("depth")) product.depth = in.number();
  return product;
}

namespace {

/// Returns `depth` elements of each given row. Throws if the first tile is not at a multiple of 1024 bytes.
std::vector<Scalar> read_swizzled(const SharedOperand& operand, int depth, const std::vector<int>& rows,
                                  const IntrinsicRun& run, Thread& t) {
  const Target buffer = run.target(operand.buffer, t);
  const std::int64_t first = run.integer(operand.first, t);
  if (first % (swizzle_alignment / 2) != 0)
    buffer.fail(
        fmt::format("a wgmma of {}[{}], no multiple of {} bytes", buffer.info->name, first, swizzle_alignment),
        "alignment");
  const Actor actor = run.actor(t);
  std::vector<Scalar> values;
  for (const int row : rows)
    for (int k = 0; k < depth; ++k) {
      const int inside = row % swizzle_side,
                at = operand.transposed ? swizzled_offset(k, inside) : swizzled_offset(inside, k);
      values.push_back(buffer.load(first + row / swizzle_side * swizzled_elements + at, actor));
    }
  return values;
}

/// Returns rows of a left operand that the threads of a warpgroup hold.
std::vector<Scalar> rows_of_threads(const std::vector<int>& rows, std::size_t depth, ValueId value,
                                    const IntrinsicRun& run, std::span<Thread* const> group) {
  std::vector<Scalar> elements(rows.size() * depth);
  for (int t = 0; t < warpgroup_threads; ++t)
    for (int i = 0; i < static_cast<int>(depth / 2); ++i) {
      const AccumulatorPosition at = wgmma_sum_position(t, i);
      const auto row = std::find(rows.begin(), rows.end(), at.row);
      if (row == rows.end()) break;  // the first two offsets cover the thread's two rows
      elements[static_cast<std::size_t>(row - rows.begin()) * depth + static_cast<std::size_t>(at.column)] =
          run.lanes(value, *group[t])[i];
    }
  return elements;
}

}  // namespace

void Wgmma::interpret(const IntrinsicRun& run, ValueId, std::span<Thread* const> threads) const {
  if (threads.size() % warpgroup_threads != 0) run.fail("a wgmma outside a pipeline", "warpgroup_context");
  std::vector<ValueId> offsets = {right.first};
  if (left_value == none) offsets.push_back(left.first);
  run.check_same(offsets, "wgmma", warpgroup_threads, threads);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    Thread& t = *threads[i];
    const std::size_t number = i % warpgroup_threads;
    OwnSums own;
    for (int s = 0; s < right.rows / 2; ++s) own.add(wgmma_sum_position(static_cast<int>(number), s));
    const auto deep = static_cast<std::size_t>(depth);
    const std::vector<Scalar> a =
        left_value == none
            ? read_swizzled(left, depth, own.rows, run, t)
            : rows_of_threads(own.rows, deep, left_value, run, threads.subspan(i - number, warpgroup_threads));
    Scalar* const all = run.var(sums, t);
    if (starts) std::fill_n(all, right.rows / 2, Scalar{});
    own.multiply(a, read_swizzled(right, depth, own.columns, run, t), deep, all, all);
  }
}

void wgmma(Builder& builder, Var sums, const SwizzledTiles& left, const SwizzledTiles& right, int depth,
           bool starts) {
  const auto operand = [&](const SwizzledTiles& p, int rows) {
    return SharedOperand{
        .buffer = p.buffer.id, .first = builder.bound(p.first).id, .rows = rows, .transposed = p.transposed};
  };
  const SharedOperand first = operand(left, wgmma_rows);
  builder.machine(Wgmma{
      .sums = sums.id, .depth = depth, .starts = starts, .left = first, .right = operand(right, 2 * sums.type.lanes)}
                      .instruction());
}

void wgmma(Builder& builder, Var sums, Value left, const SwizzledTiles& right) {
  builder.machine(Wgmma{.sums = sums.id,
                        .depth = 2 * left.type.lanes,
                        .right = {.buffer = right.buffer.id,
                                  .first = builder.bound(right.first).id,
                                  .rows = 2 * sums.type.lanes,
                                  .transposed = right.transposed},
                        .left_value = left.id}
                      .instruction());
}

constinit const IntrinsicRecord commit_sums_record =
    intrinsic_record<CommitSums>({.name = "commit_sums", .together = Together::warpgroup, .sums = OfSums::commits});

CommitSums CommitSums::of(const Instruction&) { return {}; }
Instruction CommitSums::instruction() const { return intrinsic_instruction({.record = &commit_sums_record}, {}); }

void CommitSums::verify(const IntrinsicRules& rules) const {
  rules.require(rules.context.branches == 0 && rules.context.is_in(stage_record, Stage::consuming),
                "warpgroup_context", "a commit_sums in a branch or outside the use of a stage");
}

std::string CommitSums::text(const IntrinsicText&) const { return "commit_sums"; }
CommitSums CommitSums::parse(IntrinsicReader&) { return {}; }
/// Does nothing, for the same reason as WaitSums.
void CommitSums::interpret(const IntrinsicRun&, ValueId, Thread&) const {}

void commit_sums(Builder& builder) { builder.machine(CommitSums{}.instruction()); }

constinit const IntrinsicRecord wait_sums_record = intrinsic_record<WaitSums>(
    {.name = "wait_sums", .vars = {1, 64}, .attributes = 2, .together = Together::warpgroup, .sums = OfSums::waits});

WaitSums WaitSums::of(const Instruction& in) {
  const IntrinsicOp& op = *in.machine;
  return {op.vars, static_cast<int>(op.attributes[0]), op.attributes[1] == 0};
}
Instruction WaitSums::instruction() const {
  return intrinsic_instruction({.record = &wait_sums_record, .vars = sums, .attributes = {leaving, !ended}}, {});
}

void WaitSums::verify(const IntrinsicRules& rules) const {
  rules.require(rules.context.branches == 0 && rules.context.is_in(stage_pipeline_record) &&
                    !rules.context.is_in(stage_record, Stage::producing),
                "warpgroup_context", "a wait_sums in a branch, a producer or outside a pipeline");
  rules.require(leaving >= 0 && leaving < most_sum_groups, "sum_groups", "a wait_sums that leaves {} groups",
                leaving);
  rules.require(leaving == 0 || rules.context.is_in(stage_record), "sum_groups",
                "a wait_sums that leaves groups outside a stage");
}

std::string WaitSums::text(const IntrinsicText& text) const {
  std::string result = "wait_sums";
  for (std::size_t i = 0; i < sums.size(); ++i) result += (i ? ", " : " ") + text.var(sums[i]);
  if (leaving > 0) result += fmt::format(" leaving {}", leaving);
  if (ended) result += " ended";
  return result;
}

WaitSums WaitSums::parse(IntrinsicReader& in) {
  WaitSums wait;
  in.list([&] { wait.sums.push_back(in.var()); });
  if (in.accept("leaving")) wait.leaving = in.number();
  wait.ended = in.accept("ended");
  return wait;
}

/// Does nothing: the interpreter completes products when they start.
void WaitSums::interpret(const IntrinsicRun&, ValueId, Thread&) const {}

namespace {
void wait(Builder& builder, std::span<const Var> sums, WaitSums how) {
  for (const Var v : sums) how.sums.push_back(v.id);
  builder.machine(how.instruction());
}
}  // namespace

void wait_sums(Builder& builder, std::span<const Var> sums, int leaving) {
  wait(builder, sums, {.leaving = leaving});
}
void wait_ended_sums(Builder& builder, std::span<const Var> sums) { wait(builder, sums, {.ended = true}); }

namespace {
constexpr const IntrinsicRecord* warpgroup_records[] = {&wgmma_record, &commit_sums_record, &wait_sums_record};
}  // namespace
extern const IntrinsicFamily warpgroup_intrinsics;
constinit const IntrinsicFamily warpgroup_intrinsics{.operations = warpgroup_records};

}  // namespace lathe::kernel
