#include "ir/kernel/intrinsics/gpu/mma.h"

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

constinit const IntrinsicRecord mma_record = intrinsic_record<Mma>({.name = "mma",
                                                                    .args = {5, 5},
                                                                    .buffers = {2, 2},
                                                                    .attributes = 4,
                                                                    .gives_value = true,
                                                                    .together = Together::warp});

Mma Mma::of(const Instruction& in) {
  const IntrinsicOp& op = *in.machine;
  const auto operand = [&](std::size_t i) {
    return SharedOperand{op.buffers[i].id, in.args[2 * i], in.args[2 * i + 1], static_cast<int>(op.attributes[2 * i]),
                         op.attributes[2 * i + 1] != 0};
  };
  return {in.type, operand(0), operand(1), in.args[4]};
}

Instruction Mma::instruction() const {
  return intrinsic_instruction({.record = &mma_record,
                                .buffers = {{left.buffer, Access::read}, {right.buffer, Access::read}},
                                .attributes = {left.rows, left.transposed, right.rows, right.transposed}},
                               {left.first, left.stride, right.first, right.stride, sums}, type);
}

void Mma::verify(const IntrinsicRules& rules) const {
  rules.want(sums, type, "the sums of an mma");
  for (const SharedOperand& m : {left, right}) {
    for (const ValueId id : {m.first, m.stride}) rules.want(id, {i64, 1}, "an offset of an mma");
    const BufferInfo& buffer = rules.buffer(m.buffer);
    rules.require(buffer.space == Space::shared, "mma_operands", "an mma of {}, which is not shared", buffer.name);
    rules.require(buffer.dtype == bf16 || buffer.dtype == f16, "mma_types", "an mma of {}", name(buffer.dtype));
    rules.require(m.rows > 0 && m.rows % 16 == 0, "mma_shape", "an mma of {} rows", m.rows);
    for (const ValueId id : {m.first, m.stride})
      rules.require(rules.value(id).op != Opcode::constant || rules.value(id).integer % 8 == 0, "alignment",
                    "an mma of {} by {}, which is no multiple of 8", buffer.name, rules.value(id).integer);
  }
  const DType a = rules.buffer(left.buffer).dtype, b = rules.buffer(right.buffer).dtype;
  rules.require(a == b, "mma_types", "an mma of {} and {}", name(a), name(b));
  rules.require(type == Type{f32, left.rows * right.rows / warp_threads}, "mma_shape", "an mma of {} x {} sums in {}",
                left.rows, right.rows, type);
  rules.require(rules.context.warp_loops > 0, "warp_threads", "an mma outside a thread.x loop of whole warps");
  rules.require(rules.context.branches == 0, "warp_context", "an mma in a branch");
}

std::string Mma::text(const IntrinsicText& text) const {
  const auto matrix = [&](const SharedOperand& m) {
    return fmt::format("{} rows of {}[{} by {}]{}", m.rows, text.buffer(m.buffer), text.value(m.first),
                       text.value(m.stride), m.transposed ? "^T" : "");
  };
  return fmt::format("mma {}, {}, {}", matrix(left), matrix(right), text.value(sums));
}

Mma Mma::parse(IntrinsicReader& in) {
  const auto matrix = [&] {
    SharedOperand m{.rows = in.number()};
    in.words("rows of");
    m.buffer = in.buffer();
    in.expect("[");
    m.first = in.value();
    in.expect("by");
    m.stride = in.value();
    in.expect("]");
    if ((m.transposed = in.accept("^"))) in.expect("T");
    in.expect(",");
    return m;
  };
  Mma product;
  product.left = matrix(), product.right = matrix(), product.sums = in.value();
  return product;
}

namespace {
/// Returns 16 elements of each given row of a tile.
std::vector<Scalar> read_rows(const SharedOperand& tile, const std::vector<int>& rows, const IntrinsicRun& run,
                              Thread& t) {
  const Target buffer = run.target(tile.buffer, t);
  const std::int64_t first = run.integer(tile.first, t), stride = run.integer(tile.stride, t);
  if (first % 8 != 0 || stride % 8 != 0)
    buffer.fail(fmt::format("an mma of {}[{} by {}], no multiples of 16 bytes", buffer.info->name, first, stride),
                "alignment");
  const Actor actor = run.actor(t);
  std::vector<Scalar> values;
  for (const int row : rows)
    for (int k = 0; k < mma_depth; ++k) {
      const std::int64_t along = tile.transposed ? row : k, across = tile.transposed ? k : row;
      values.push_back(buffer.load(first + across * stride + along, actor));
    }
  return values;
}
}  // namespace

void Mma::interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const {
  const ValueId offsets[] = {left.first, left.stride, right.first, right.stride};
  run.check_same(offsets, "mma", warp_threads, threads);
  for (Thread* t : threads) {
    OwnSums own;
    for (int i = 0; i < type.lanes; ++i)
      own.add(accumulator_position(right.rows, static_cast<int>(t->position[0] % warp_threads), i));
    own.multiply(read_rows(left, own.rows, run, *t), read_rows(right, own.columns, run, *t), mma_depth,
                 run.lanes(sums, *t), run.lanes(id, *t));
  }
}

Value mma(Builder& builder, const MmaOperand& left, const MmaOperand& right, Value sums) {
  const auto tile = [&](const MmaOperand& m) {
    return SharedOperand{m.buffer.id, builder.bound(m.first).id, builder.bound(m.stride).id, m.rows, m.transposed};
  };
  return builder.machine(Mma{sums.type, tile(left), tile(right), sums.id}.instruction());
}

namespace {
constexpr const IntrinsicRecord* mma_records[] = {&mma_record};
}  // namespace
extern const IntrinsicFamily mma_intrinsics;
constinit const IntrinsicFamily mma_intrinsics{.operations = mma_records};

}  // namespace lathe::kernel
