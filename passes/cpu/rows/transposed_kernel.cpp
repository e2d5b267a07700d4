#include <algorithm>

#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/rows/transposed_space.h"
#include "passes/cpu/vector_transpose.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

namespace {

constexpr int unrolled_instructions = 8;  // maximum program size for unrolling the rows of a tile

/// Returns the dtype in which vectors are shuffled: a boolean is one bit in a register, and shuffles need a byte.
DType shuffled(DType dtype) { return dtype == boolean ? u8 : dtype; }

/// Emits an elementwise region, one tile at a time. Loads the vectors of a transposed operand across the tile,
/// transposes them in registers and stores them to scratch, one vector per row of the tile. The elementwise program
/// loads them from there.
class TransposedKernel {
 public:
  TransposedKernel(const CpuContext& lowering, const ElementwiseProgram& program, const TransposedSpace& space)
      : lowering_(lowering),
        program_(program),
        space_(space),
        context_("transposed", KernelRole::elementwise),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder),
        known_rows_(program_.points(space.across).value()),
        known_columns_(program_.points(space.along).value()) {
    declare_buffers(context_, {&program_}, lowering);
  }

  KernelContext::Built run() {
    rows_ = context_.dim(program_.points(space_.across));
    columns_ = context_.dim(program_.points(space_.along));
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const Value row_blocks = b_.ceil_div(rows_, space_.row_block),
                lane_blocks = b_.ceil_div(columns_, space_.lane_block),
                rest = context_.dim(program_.points(space_.rest));
    b_.parallel_for(0, rest * row_blocks * lane_blocks, 1, [&](Value task) {
      const Value block = task / lane_blocks;
      rest_ = block / row_blocks;
      one_block(block % row_blocks * space_.row_block, task % lane_blocks * space_.lane_block, top);
    });
    auto built = context_.finish();
    built.launch.work = Dim(std::int64_t{space_.row_block} * space_.lane_block * program_.work());
    return built;
  }

 private:
  void one_block(Value row, Value column, const Scope& top) {
    Scope scope(emitter_, {{space_.rest, rest_, 1}}, {}, &top);
    emitter_.hoist(scope, tile_dims());
    squares_.clear();
    for (const int i : space_.loads)
      squares_.push_back(b_.alloc(shuffled(program_[i].dtype), std::int64_t{space_.rows} * space_.lanes,
                                  kernel::Space::stack, "square"));
    b_.for_loop(column, kernel::min(column + space_.lane_block, columns_), space_.lanes, [&](Value c) {
      b_.for_loop(row, kernel::min(row + space_.row_block, rows_), space_.rows, [&](Value r) { tile(r, c, scope); });
    });
  }

  std::uint64_t tile_dims() const {
    std::uint64_t bits = 0;
    for (const auto* dims : {&space_.across, &space_.along})
      for (const int d : *dims) bits |= 1ULL << d;
    return bits;
  }

  /// Whether the domain is a whole number of tiles, or a single incomplete one.
  static bool fits(const std::optional<std::int64_t>& known, int side) {
    return known && (*known % side == 0 || *known < side);
  }

  void tile(Value row, Value column, const Scope& around) {
    Value inside;
    if (!fits(known_rows_, space_.rows)) inside = row + space_.rows <= rows_;
    if (!fits(known_columns_, space_.lanes)) {
      const Value all = column + space_.lanes <= columns_;
      inside = inside ? inside && all : all;
    }
    if (!inside) return whole_tile(row, column, around);
    b_.if_(inside, [&] { whole_tile(row, column, around); }, [&] { ragged_tile(row, column, around); });
  }

  /// Returns the mask of a side that is known to be shorter than the tile; empty otherwise.
  Value cut(const std::optional<std::int64_t>& known, int side) {
    return known && *known < side ? b_.tail_mask(b_.index(*known), side) : Value{};
  }

  void whole_tile(Value row, Value column, const Scope& around) {
    const std::int64_t columns = std::min<std::int64_t>(known_columns_.value_or(space_.lanes), space_.lanes),
                       rows = std::min<std::int64_t>(known_rows_.value_or(space_.rows), space_.rows);
    const Value row_mask = cut(known_rows_, space_.rows), lane_mask = cut(known_columns_, space_.lanes);
    for (std::size_t s = 0; s < squares_.size(); ++s) {
      std::vector<Value> vectors;
      for (int k = 0; k < space_.lanes; ++k)
        vectors.push_back(k < columns ? load_across(s, row, column + k, row_mask, around)
                                      : b_.constant_int(squares_[s].dtype, 0, space_.rows));
      store_transposed(s, vectors);
    }
    const bool unrolls = program_.size() <= unrolled_instructions;
    b_.for_loop(
        0, rows, 1, [&](Value j) { one_row(row, j, column, lane_mask, around); },
        unrolls ? kernel::LoopKind::unroll : kernel::LoopKind::serial);
  }

  void ragged_tile(Value row, Value column, const Scope& around) {
    const Value row_mask = b_.tail_mask(rows_ - row, space_.rows);
    b_.for_loop(0, space_.lanes, 1, [&](Value k) {
      const Value mask = row_mask && column + k < columns_;
      for (std::size_t s = 0; s < squares_.size(); ++s)
        b_.store(squares_[s], k * space_.rows, load_across(s, row, column + k, mask, around));
    });
    for (std::size_t s = 0; s < squares_.size(); ++s) {
      std::vector<Value> vectors;
      for (int k = 0; k < space_.lanes; ++k) vectors.push_back(b_.load(squares_[s], k * space_.rows, space_.rows));
      store_transposed(s, vectors);
    }
    const Value lane_mask = b_.tail_mask(columns_ - column, space_.lanes);
    b_.for_loop(0, kernel::min(rows_ - row, space_.rows), 1,
                [&](Value j) { one_row(row, j, column, lane_mask, around); });
  }

  /// Loads a vector of a transposed value, along the rows of a tile at one of its columns.
  Value load_across(std::size_t s, Value row, Value column, Value mask, const Scope& around) {
    Scope scope(emitter_, {{space_.rest, rest_, 1}, {space_.across, row, space_.rows}, {space_.along, column, 1}},
                mask, &around);
    return b_.cast(b_.broadcast(emitter_.emit(space_.loads[s], scope), space_.rows), squares_[s].dtype);
  }

  void store_transposed(std::size_t s, const std::vector<Value>& vectors) {
    const std::vector<Value> rows = transpose_rectangle(b_, vectors);
    for (std::size_t j = 0; j < rows.size(); ++j)
      b_.store(squares_[s], static_cast<std::int64_t>(j) * space_.lanes, rows[j]);
  }

  /// All values of a row of a tile are computed before the first is stored, because a store may overwrite the input
  /// of another one.
  void one_row(Value row, Value j, Value column, Value mask, const Scope& around) {
    Scope scope(emitter_,
                {{space_.rest, rest_, 1}, {space_.across, row + j, 1}, {space_.along, column, space_.lanes}}, mask,
                &around);
    for (std::size_t s = 0; s < squares_.size(); ++s) {
      const Value loaded = b_.load(squares_[s], j * space_.lanes, space_.lanes);
      scope.bind(space_.loads[s], b_.cast(loaded, compute_type(program_[space_.loads[s]].dtype)));
    }
    for (const ElementwiseStore& store : program_.stores) emitter_.emit(store.value, scope);
    for (const ElementwiseStore& store : program_.stores) {
      const DType dtype = program_[store.value].dtype;
      const Value value = emitter_.emit(store.value, scope);
      if (goes_past_caches(lowering_, program_, store))
        emitter_.stream(store.node, dtype, store.form, value, scope);
      else
        emitter_.store(store.node, dtype, store.form, value, scope);
    }
  }

  const CpuContext& lowering_;
  const ElementwiseProgram& program_;
  const TransposedSpace& space_;
  KernelContext context_;
  ElementwiseEmitter emitter_;
  kernel::Builder& b_;
  std::optional<std::int64_t> known_rows_, known_columns_;
  Value rows_, columns_;  ///< of the domain
  Value rest_;            ///< the index of the block's other dims
  std::vector<Buffer> squares_;
};

}  // namespace

std::optional<KernelContext::Built> lower_transposed(const CpuContext& context, const Region& region) {
  const ElementwiseProgram program = region_program(context.graph, context.plan, region);
  const auto space = transposed_space(program, context.vectors());
  if (!space) return std::nullopt;
  return TransposedKernel(context, program, *space).run();
}

}  // namespace lathe::cpu
