#include "ir/kernel/intrinsics/tile_mma.h"

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

Scalar evaluate_tile_sum(const Scalar* a, const Scalar* b, Scalar c) {
  float halves[2] = {0, 0};
  for (int k = 0; k < tile_depth; ++k) halves[k % 2] = flushed_fma(a[k].real, b[k].real, halves[k % 2]);
  return {.real = flushed(flushed(c.real) + flushed(halves[0] + halves[1]))};
}

constinit const IntrinsicRecord tile_mma_record =
    intrinsic_record<TileMma>({.name = "tile_mma", .args = {7, 8}, .buffers = {3, 3}, .attributes = 4});

TileMma TileMma::of(const Instruction& in) {
  const IntrinsicOp& op = *in.machine;
  const auto matrix = [&](std::size_t i) { return Matrix{op.buffers[i].id, in.args[2 * i], in.args[2 * i + 1]}; };
  return {.sums = matrix(0),
          .left = matrix(1),
          .right = matrix(2),
          .rows = static_cast<int>(op.attributes[0]),
          .columns = static_cast<int>(op.attributes[1]),
          .depth = in.args[6],
          .continues = op.buffers[0].access == Access::read_write,
          .split_bf16 = op.attributes[2] != 0,
          .prefetch = in.args.size() > 7 ? in.args[7] : none,
          .prefetch_lines = static_cast<int>(op.attributes[3])};
}

Instruction TileMma::instruction() const {
  std::vector<ValueId> args = {sums.first, sums.stride, left.first, left.stride, right.first, right.stride, depth};
  if (prefetch != none) args.push_back(prefetch);
  return intrinsic_instruction({.record = &tile_mma_record,
                                .buffers = {{sums.buffer, continues ? Access::read_write : Access::write},
                                            {left.buffer, Access::read},
                                            {right.buffer, Access::read}},
                                .attributes = {rows, columns, split_bf16, prefetch_lines}},
                               std::move(args));
}

void TileMma::verify(const IntrinsicRules& rules) const {
  for (const Matrix& m : {sums, left, right})
    for (const ValueId id : {m.first, m.stride}) rules.want(id, {i64, 1}, "an offset of a tile_mma");
  rules.want(depth, {i64, 1}, "the depth of a tile_mma");
  const BufferInfo& to = rules.buffer(sums.buffer);
  rules.require(to.space != Space::shared && to.dtype == f32, "tile_operands",
                "a tile_mma into {}, which is shared or no f32", to.name);
  for (const BufferId operand : {left.buffer, right.buffer}) {
    const BufferInfo& buffer = rules.buffer(operand);
    rules.require(buffer.dtype == bf16 && buffer.space != Space::shared, "tile_operands",
                  "a tile_mma of {}, which is shared or no bf16", buffer.name);
  }
  if (prefetch != none) rules.want(prefetch, {i64, 1}, "what a tile_mma prefetches");
  constexpr int most_prefetched = 256;
  rules.require(prefetch == none ? prefetch_lines == 0 : prefetch_lines > 0 && prefetch_lines <= most_prefetched,
                "tile_prefetch", "a tile_mma that prefetches {} cache lines", prefetch_lines);
  for (const int side : {rows, columns})
    rules.require(side == tile_side || side == 2 * tile_side, "tile_shape", "a tile_mma of {} x {} sums", rows,
                  columns);
  const Instruction& deep = rules.value(depth);
  rules.require(deep.op != Opcode::constant || deep.integer % tile_depth == 0, "tile_shape",
                "a tile_mma over {}, which is no multiple of {}", deep.integer, tile_depth);
  const auto has_stride = [&](const Matrix& m, std::int64_t stride) {
    const Instruction& given = rules.value(m.stride);
    return given.op == Opcode::constant && given.integer == stride;
  };
  rules.require(!split_bf16 || (has_stride(left, tile_depth) && has_stride(right, 2 * tile_depth)), "bf16_terms",
                "a tile_mma of split bf16 whose strides are not {} and {}", tile_depth, 2 * tile_depth);
}

/// "tile_mma sums[0 by 64] += left[%1 by k], right[%2 by 64], 32 x 32 x k"; "=" if it starts from zeros.
std::string TileMma::text(const IntrinsicText& text) const {
  const auto matrix = [&](const Matrix& m) {
    return fmt::format("{}[{} by {}]", text.buffer(m.buffer), text.value(m.first), text.value(m.stride));
  };
  const std::string prefetched =
      prefetch == none ? "" : fmt::format(", prefetch {} lines from {}", prefetch_lines, text.value(prefetch));
  return fmt::format("tile_mma {} {} {}, {}, {} x {} x {}{}{}", matrix(sums), continues ? "+=" : "=", matrix(left),
                     matrix(right), rows, columns, text.value(depth), split_bf16 ? " as split bf16" : "", prefetched);
}

TileMma TileMma::parse(IntrinsicReader& in) {
  const auto matrix = [&] {
    Matrix m{.buffer = in.buffer()};
    in.expect("[");
    m.first = in.value();
    in.expect("by");
    m.stride = in.value();
    in.expect("]");
    return m;
  };
  TileMma product{.sums = matrix(), .continues = in.accept("+=")};
  if (!product.continues) in.expect("=");
  product.left = matrix();
  in.expect(",");
  product.right = matrix();
  in.expect(",");
  product.rows = in.number();
  in.expect("x");
  product.columns = in.number();
  in.expect("x");
  product.depth = in.value();
  if ((product.split_bf16 = in.accept("as"))) in.words("split bf16");
  if (!in.accept(",")) return product;
  in.expect("prefetch");
  product.prefetch_lines = in.number();
  in.words("lines from");
  product.prefetch = in.value();
  return product;
}

std::vector<BlockAccess> TileMma::blocks() const {
  return {{{sums.buffer, Access::write}, sums.first, sums.stride, rows, columns},
          {{left.buffer, Access::read}, left.first, left.stride},
          {{right.buffer, Access::read}, right.first, right.stride}};
}

namespace {

/// An operand in memory during interpretation.
struct TileInMemory {
  Target buffer;
  std::int64_t first = 0, stride = 0;
};

/// A block of sums, row-major.
class TileSums {
 public:
  TileSums(int rows, int columns)
      : rows_(rows), columns_(columns), all_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {}

  Scalar& at(int m, int n) { return all_[m * columns_ + n]; }

  template <class F>
  void for_each(const F& f) {
    for (int m = 0; m < rows_; ++m)
      for (int n = 0; n < columns_; ++n) f(m, n, at(m, n));
  }

  /// Adds the products of tile_depth k of the operands, starting at the given elements.
  void add(const TileInMemory& left, std::int64_t left_first, const TileInMemory& right, std::int64_t right_first,
           const Actor& actor) {
    std::vector<Scalar> a(static_cast<std::size_t>(rows_ * tile_depth)),
        b(static_cast<std::size_t>(columns_ * tile_depth));
    for (int m = 0; m < rows_; ++m)
      for (int k = 0; k < tile_depth; ++k)
        a[m * tile_depth + k] = left.buffer.load(left_first + m * left.stride + k, actor);
    for (int n = 0; n < columns_; ++n)
      for (int k = 0; k < tile_depth; ++k)
        b[n * tile_depth + k] = right.buffer.load(right_first + k / 2 * right.stride + 2 * n + k % 2, actor);
    for_each(
        [&](int m, int n, Scalar& sum) { sum = evaluate_tile_sum(&a[m * tile_depth], &b[n * tile_depth], sum); });
  }

 private:
  int rows_, columns_;
  std::vector<Scalar> all_;
};

}  // namespace

void TileMma::interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
  const auto in_memory = [&](const Matrix& m) {
    return TileInMemory{run.target(m.buffer, t), run.integer(m.first, t), run.integer(m.stride, t)};
  };
  const TileInMemory to = in_memory(sums), a = in_memory(left), b = in_memory(right);
  const std::int64_t deep = run.integer(depth, t);
  const Actor actor = run.actor(t);
  if (deep % tile_depth != 0)
    to.buffer.fail(fmt::format("a tile_mma over {}, which is no multiple of {}", deep, tile_depth), "tile_shape");
  TileSums block(rows, columns);
  if (continues)
    block.for_each([&](int m, int n, Scalar& sum) { sum = to.buffer.load(to.first + m * to.stride + n, actor); });
  for (std::int64_t step = 0; step < deep / tile_depth; ++step) {
    if (!split_bf16) {
      block.add(a, a.first + step * tile_depth, b, b.first + step * (tile_depth / 2) * b.stride, actor);
      continue;
    }
    const auto term = [&](int s) { return (step * bf16_terms + s) * term_elements; };
    for (const auto& [l, r] : term_products) block.add(a, a.first + term(l), b, b.first + term(r), actor);
  }
  block.for_each([&](int m, int n, Scalar& sum) { to.buffer.store(to.first + m * to.stride + n, sum, actor); });
}

void tile_mma(Builder& builder, const TileBlock& block, const Builder::Rows& sums, const Builder::Rows& left,
              const Builder::Rows& right, Builder::Bound depth) {
  const auto matrix = [&](const Builder::Rows& m) {
    return TileMma::Matrix{m.buffer.id, builder.bound(m.first).id, builder.bound(m.stride).id};
  };
  builder.machine(TileMma{.sums = matrix(sums),
                          .left = matrix(left),
                          .right = matrix(right),
                          .rows = block.rows,
                          .columns = block.columns,
                          .depth = builder.bound(depth).id,
                          .continues = block.continues,
                          .split_bf16 = block.split_bf16,
                          .prefetch = block.prefetch_lines > 0 ? builder.bound(block.prefetch).id : none,
                          .prefetch_lines = block.prefetch_lines}
                      .instruction());
}

namespace {
constexpr const IntrinsicRecord* tile_records[] = {&tile_mma_record};
}  // namespace
extern const IntrinsicFamily tile_intrinsics;
constinit const IntrinsicFamily tile_intrinsics{.operations = tile_records};

}  // namespace lathe::kernel
