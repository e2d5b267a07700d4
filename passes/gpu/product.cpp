#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/product_operands.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using schedule::LaneAxis;
using Scope = PointEmitter::Scope;

namespace {

constexpr int depth = 16;          // contracted at once
constexpr int side = 16;           // threads along a tile
constexpr int own = 4;             // elements of a vector
constexpr int block = side * own;  // rows and columns of which a thread has four neighbours each
constexpr int threads = side * side;
constexpr std::int64_t enough_tiles = 64;  // of 128 x 128, to be worth it

/// A block's tile has groups * 64 rows and columns, and each thread four neighbours both ways of every 64.
class ProductKernel {
 public:
  ProductKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        operands_(lowering, lowering.graph[region.members[0]]),
        context_("product"),
        b_(context_.builder),
        program_(region_program(lowering.graph, lowering.plan, region)),
        epilogue_(context_, program_, lowering.buffer_of),
        left_loads_(context_, operands_.left.operand.program, lowering.buffer_of),
        right_loads_(context_, operands_.right.operand.program, lowering.buffer_of),
        top_(epilogue_, {}),
        left_{operands_.left, left_loads_, {left_loads_, {}}, operands_.m},
        right_{operands_.right, right_loads_, {right_loads_, {}}, operands_.n},
        groups_(choose_groups()),
        tile_(groups_ * block),
        line_(tile_ + own) {}

  KernelContext::Built run() {
    declare_buffers(context_, {&program_, &operands_.left.operand.program, &operands_.right.operand.program},
                    lowering_);
    epilogue_.hoist(top_);
    left_loads_.hoist(left_.top);
    right_loads_.hoist(right_.top);
    m_ = context_.dim(operands_.m), n_ = context_.dim(operands_.n), k_ = context_.dim(operands_.k);
    const Value down = b_.ceil_div(m_, tile_), across = b_.ceil_div(n_, tile_);
    const auto tile = [&](Value i) {
      const Place at{i / across / down, i / across % down * tile_, i % across * tile_};
      left_.shared = b_.alloc(operands_.compute, line_ * depth, kernel::Space::shared, "left");
      right_.shared = b_.alloc(operands_.compute, line_ * depth, kernel::Space::shared, "right");
      b_.for_loop(
          0, side, 1,
          [&](Value y) { b_.for_loop(0, side, 1, [&](Value x) { thread(at, y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    };
    b_.for_loop(0, context_.dim(operands_.batch) * down * across, 1, tile, LoopKind::block_x);
    auto built = context_.finish();
    built.launch.flops = Dim(2) * operands_.batch * operands_.m * operands_.n * operands_.k;
    return built;
  }

 private:
  struct Place {
    Value batch, m, n;  ///< of a tile's first element
  };
  /// An operand, and where a tile of it lies in shared memory: [k][row], lines padded against bank conflicts.
  struct Side {
    const ProductOperand& operand;
    PointEmitter& loads;
    Scope top;
    Dim rows;
    kernel::Buffer shared = {};
  };

  /// Tiles of 128 read each operand half as often as those of 64, where there
  /// are rows and columns to fill them.
  int choose_groups() const {
    const auto m = operands_.m.value(), n = operands_.n.value();
    constexpr std::int64_t wide = 2 * block;
    if (operands_.compute != f32 || (!m && !n) || m.value_or(wide) < wide || n.value_or(wide) < wide) return 1;
    const auto elements = (operands_.batch * operands_.m * operands_.n).value();
    return elements && *elements < enough_tiles * wide * wide ? 1 : 2;
  }

  void thread(const Place& at, Value y, Value x) {
    const DType compute = operands_.compute;
    const auto zeros = [&](int count) {
      std::vector<kernel::Var> vars;
      for (int i = 0; i < count; ++i) vars.push_back(b_.var({compute, own}, b_.constant(compute, 0)));
      return vars;
    };
    const std::vector<kernel::Var> sums = zeros(groups_ * groups_ * own), left = zeros(groups_),
                                   right = zeros(groups_);
    const Value slot = y * side + x;
    const auto fetch = [&](Value first_k) {
      bring(left_, at.batch, at.m, first_k, slot, left);
      bring(right_, at.batch, at.n, first_k, slot, right);
    };
    fetch(b_.index(0));
    b_.for_loop(0, k_, depth, [&](Value first_k) {
      put(left_, slot, left);
      put(right_, slot, right);
      b_.barrier();
      fetch(first_k + depth);  // under way while these are multiplied
      b_.for_loop(0, depth, 1, [&](Value k) { multiply(k, x, y, sums); }, LoopKind::unroll);
      b_.barrier();
    });
    finish(at, y, x, sums);
  }

  /// Where piece g of a thread stands in a tile: each is four elements that are
  /// neighbours in memory.
  struct Piece {
    Value row, k;
  };
  Piece piece_of(const Side& s, Value slot, int g) const {
    const bool along_k = s.operand.axis == LaneAxis::k;
    const int pieces = (along_k ? depth : tile_) / own;
    const Value number = slot + g * threads, along = number % pieces * own, other = number / pieces;
    return along_k ? Piece{other, along} : Piece{along, other};
  }

  /// Loads [first_k, + depth) of a tile's rows; zeros beyond the ends.
  void bring(Side& s, Value batch, Value first_row, Value first_k, Value slot, const std::vector<kernel::Var>& into) {
    const bool along_k = s.operand.axis == LaneAxis::k;
    const Value rows = context_.dim(s.rows);
    const DType compute = operands_.compute;
    for (int g = 0; g < groups_; ++g) {
      const Piece piece = piece_of(s, slot, g);
      const Value row = first_row + piece.row, k = first_k + piece.k;
      const kernel::Var& var = into[static_cast<std::size_t>(g)];
      b_.set(var, b_.constant(compute, 0));
      b_.if_(row < rows && k < k_, [&] {
        unmasked_or_masked(
            b_, along_k ? k : row, along_k ? k_ : rows, own, along_k ? operands_.k : s.rows, [&](Value mask) {
              const Value value = s.operand.load(s.loads, s.top, batch, row, k, s.operand.axis, own, mask);
              b_.set(var, mask ? b_.select(mask, value, b_.constant(compute, 0, own)) : value);
            });
      });
    }
  }

  void put(const Side& s, Value slot, const std::vector<kernel::Var>& from) {
    for (int g = 0; g < groups_; ++g) {
      const Piece piece = piece_of(s, slot, g);
      const Value at = piece.k * line_ + piece.row, value = b_.get(from[static_cast<std::size_t>(g)]);
      if (s.operand.axis == LaneAxis::k)
        b_.store_strided(s.shared, at, line_, value);
      else
        b_.store(s.shared, at, value);
    }
  }

  void multiply(Value k, Value x, Value y, const std::vector<kernel::Var>& sums) {
    const bool fused = operands_.compute == f32 || operands_.compute == f64;
    std::vector<Value> rows, columns;
    for (int g = 0; g < groups_; ++g) {
      rows.push_back(b_.load(left_.shared, k * line_ + g * block + y * own, own));
      columns.push_back(b_.load(right_.shared, k * line_ + g * block + x * own, own));
    }
    auto sum = sums.begin();
    for (const Value& row : rows)
      for (int r = 0; r < own; ++r)
        for (const Value& column : columns) {
          const Value factor = b_.broadcast(b_.extract(row, r), own);
          b_.set(*sum, fused ? b_.fma(factor, column, b_.get(*sum)) : b_.get(*sum) + factor * column);
          ++sum;
        }
  }

  /// Rounds to the result's dtype and runs the epilogue. The sums go through
  /// memory of the thread's own, so that the epilogue's code stands once.
  void finish(const Place& at, Value y, Value x, const std::vector<kernel::Var>& sums) {
    const DType dtype = operands_.dtype, compute = operands_.compute;
    const auto count = static_cast<std::int64_t>(sums.size());
    const kernel::Buffer kept = b_.alloc(compute, count * own, kernel::Space::stack, "sums");
    for (std::size_t i = 0; i < sums.size(); ++i)
      b_.store(kept, b_.index(static_cast<std::int64_t>(i) * own), b_.get(sums[i]));
    b_.for_loop(0, count, 1, [&](Value i) {
      const Value row = i / groups_, m = at.m + row / own * block + y * own + row % own;
      const Value n = at.n + i % groups_ * block + x * own;
      b_.if_(m < m_ && n < n_, [&] {
        const Value sum = b_.load(kept, i * own, own);
        unmasked_or_masked(b_, n, n_, own, operands_.n, [&](Value mask) {
          Scope scope(epilogue_,
                      {{operands_.batch_dims, at.batch, 1}, {operands_.m_dims, m, 1}, {operands_.n_dims, n, own}},
                      mask, &top_);
          scope.bind(0, compute == dtype ? sum : b_.cast(b_.cast(sum, dtype), compute));
          epilogue_.store_all(scope);
        });
      });
    });
  }

  const LoweringContext& lowering_;
  ProductOperands operands_;
  KernelContext context_;
  kernel::Builder& b_;
  PointProgram program_;
  PointEmitter epilogue_, left_loads_, right_loads_;
  Scope top_;
  Side left_, right_;
  int groups_, tile_, line_;
  Value m_, n_, k_;
};

}  // namespace

KernelContext::Built lower_product(const LoweringContext& context, const Region& region) {
  return ProductKernel(context, region).run();
}

}  // namespace lathe::gpu
