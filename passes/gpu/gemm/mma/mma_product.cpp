#include <fmt/core.h>

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "passes/gpu/gemm/mma/mma_parts.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Builder;
using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Position = ProductParts::Position;
using Side = ProductParts::Side;

namespace {

constexpr int chunk = TensorParts::chunk;

/// Each warp multiplies tiles in shared memory by mma. Operands whose memory layout is suitable are copied there
/// asynchronously; others are computed and pass through registers. The sums go back through shared memory, so that
/// the epilogue's accesses are long.
class TensorProduct {
 public:
  TensorProduct(const GpuContext& lowering, const Region& region, const TensorPlan& plan)
      : tensor_(lowering, region),
        parts_(tensor_.product),
        b_(parts_.builder()),
        dtype_(parts_.operands.dtype),
        k_step_(lowering.tuned.products.mma_depth),
        stages_(lowering.tuned.products.mma_stages),
        plan_(plan),
        tile_(plan_.tile),
        left_(operand(parts_.left, tile_.rows)),
        right_(operand(parts_.right, tile_.columns)) {
    parts_.context().multiplies_by(Multiplier::mma);
  }

  std::vector<KernelContext::Built> run(const GpuContext& lowering, const Region& region) {
    std::vector<KernelContext::Built> built;
    if (plan_.splits == 1) {
      built.push_back(parts_.tiles(tile_.rows, tile_.columns, [&](const Position& at) {
        block([&](Value t) { finish(at, t, multiply(at, b_.index(0), parts_.k, t)); });
      }));
      return built;
    }
    const ProductParts::Partial partial = parts_.partial(tile_.rows, tile_.columns, plan_.splits);
    const auto one = [&](const Position& at, Value number) {
      const Value length = b_.round_up(b_.ceil_div(parts_.k, plan_.splits), k_step_), lo = number * length;
      block([&](Value t) { keep(partial, at, number, t, multiply(at, lo, kernel::min(lo + length, parts_.k), t)); });
    };
    built.push_back(parts_.tiles_of_splits(tile_.rows, tile_.columns, partial, one));
    built.push_back(ProductParts(lowering, region).combine(partial));
    return built;
  }

 private:
  /// 16 bytes of a stage that a thread moves: their position in a tile and in a stage.
  struct Chunk {
    Value number, along, across, offset;
    Var held = {};  ///< in flight, unless they are copied
  };
  struct Operand {
    Side& side;
    int rows;     ///< per tile
    int k_step;   ///< contracted per step
    bool copies;  ///< asynchronously
    std::vector<Chunk> chunks = {};

    int along() const { return side.along_k() ? k_step : rows; }   ///< elements of a row
    int across() const { return side.along_k() ? rows : k_step; }  ///< rows
    int stride() const { return along() + TensorParts::pad; }
    int stage() const { return across() * stride(); }
  };

  Operand operand(Side& side, int rows) const { return {side, rows, k_step_, tensor_.copies(side)}; }

  /// Emits the threads of a block and allocates their shared memory.
  void block(const std::function<void(Value)>& thread) {
    // In the end, the result's tile reuses the memory of the left operand.
    const int left = std::max(stages_ * left_.stage(), tile_.rows * TensorParts::stride(tile_));
    left_.side.shared = b_.alloc(dtype_, left, kernel::Space::shared, "left");
    right_.side.shared = b_.alloc(dtype_, stages_ * right_.stage(), kernel::Space::shared, "right");
    b_.for_loop(0, tile_.threads(), 1, thread, LoopKind::thread_x);
  }

  /// Returns the first row and column of a thread's warp.
  std::pair<Value, Value> corner(Value t) const {
    const Value warp = t / kernel::warp_threads;
    return {warp / tile_.warps_across * tile_.warp_rows(), warp % tile_.warps_across * tile_.warp_columns()};
  }

  /// Returns the thread's sums over [lo, hi); lo is a multiple of k_step_.
  Value multiply(const Position& at, Value lo, Value hi, Value t) {
    const auto [row, column] = corner(t);
    const int lanes = tile_.warp_rows() * tile_.warp_columns() / kernel::warp_threads;
    const Var sums = b_.var({f32, lanes}, b_.constant(f32, 0));
    for (Operand* o : {&left_, &right_}) find_splits(*o, t);
    b_.for_loop(
        0, stages_ - 1, 1,
        [&](Value stage) {
          start(at, lo + stage * k_step_, hi, stage);
          put(stage);
        },
        LoopKind::unroll);
    b_.for_loop(lo, hi, k_step_, [&, row = row, column = column](Value first_k) {
      wait_copies(b_, stages_ - 2);
      b_.barrier();
      const Value ahead = first_k + (stages_ - 1) * k_step_, next = (ahead - lo) / k_step_ % stages_;
      start(at, ahead, hi, next);
      const Value slot = (first_k - lo) / k_step_ % stages_;
      for (int k = 0; k < k_step_; k += kernel::mma_depth)
        b_.set(sums, mma(b_, matrix(left_, slot, row, k, tile_.warp_rows()),
                         matrix(right_, slot, column, k, tile_.warp_columns()), b_.get(sums)));
      put(next);
    });
    return b_.get(sums);
  }

  kernel::MmaOperand matrix(const Operand& o, Value slot, Value row, int k, int rows) const {
    const bool along_k = o.side.along_k();
    const Value inside = along_k ? row * o.stride() + k : row + k * o.stride();
    return {o.side.shared, slot * o.stage() + inside, o.stride(), rows, !along_k};
  }

  void find_splits(Operand& o, Value t) const {
    o.chunks.clear();
    const int chunks_per_row = o.along() / chunk;
    for (int first = 0; first < o.rows * k_step_ / chunk; first += tile_.threads()) {
      const Value number = t + first, along = number % chunks_per_row * chunk, across = number / chunks_per_row;
      o.chunks.push_back({number, along, across, across * o.stride() + along});
      if (!o.copies) o.chunks.back().held = b_.var({dtype_, chunk}, b_.constant(dtype_, 0));
    }
  }

  /// Runs body(chunk, row, k) for the thread's chunks of a tile that starts at (first_row, first_k).
  template <class Body>
  void for_splits(const Operand& o, Value first_row, Value first_k, const Body& body) {
    const int all = o.rows * k_step_ / chunk;
    for (const Chunk& p : o.chunks) {
      const auto one = [&] {
        o.side.along_k() ? body(p, first_row + p.across, first_k + p.along)
                         : body(p, first_row + p.along, first_k + p.across);
      };
      all % tile_.threads() == 0 ? one() : b_.if_(p.number < all, one);
    }
  }

  /// Starts to load the step that begins at first_k into its slot of the pipeline.
  void start(const Position& at, Value first_k, Value hi, Value slot) {
    b_.if_(first_k < hi, [&] {
      if (left_.copies) copy(left_, at.batch, at.m, first_k, slot);
      if (right_.copies) copy(right_, at.batch, at.n, first_k, slot);
    });
    commit_copies(b_);
    if (!left_.copies) bring(left_, at.batch, at.m, first_k);
    if (!right_.copies) bring(right_, at.batch, at.n, first_k);
  }

  void copy(const Operand& o, Value batch, Value first_row, Value first_k, Value slot) {
    for_splits(o, first_row, first_k, [&](const Chunk& p, Value row, Value k) {
      tensor_.copy(o.side, batch, row, k, slot * o.stage() + p.offset, o.rows, k_step_);
    });
  }

  void bring(const Operand& o, Value batch, Value first_row, Value first_k) {
    for_splits(o, first_row, first_k,
               [&](const Chunk& p, Value row, Value k) { parts_.bring(o.side, batch, row, k, p.held); });
  }

  /// Stores the chunks that went through registers to shared memory.
  void put(Value slot) {
    for (const Operand* o : {&left_, &right_})
      if (!o->copies)
        for_splits(*o, b_.index(0), b_.index(0), [&](const Chunk& p, Value, Value) {
          b_.store(o->side.shared, slot * o->stage() + p.offset, b_.get(p.held));
        });
  }

  /// Stores a thread's sums in a tile whose first element is at `first`, with rows of `stride` elements.
  void store_sums(kernel::Buffer to, Value first, std::int64_t stride, Value t, Value sums) {
    const auto [row, column] = corner(t);
    tensor_.store_sums(to, first + (row * stride + column), stride, tile_.warp_columns(), t % kernel::warp_threads,
                       sums);
  }

  /// Stores the sums of a split, without the epilogue.
  void keep(const ProductParts::Partial& partial, const Position& at, Value number, Value t, Value sums) {
    store_sums(parts_.context().buffer(partial.buffer), parts_.first_partial(partial, at, number), partial.columns, t,
               sums);
  }

  void finish(const Position& at, Value t, Value sums) {
    const kernel::Buffer tile = left_.side.shared;
    wait_copies(b_, 0);
    b_.barrier();
    store_sums(tile, b_.index(0), TensorParts::stride(tile_), t, sums);
    b_.barrier();
    tensor_.finish(at, tile, tile_, t);
  }

  TensorParts tensor_;
  ProductParts& parts_;
  Builder& b_;
  DType dtype_;
  int k_step_, stages_;  ///< contracted per step; stages in shared memory: one is multiplied while the others are
                         ///< loaded
  TensorPlan plan_;
  TensorTile tile_;
  Operand left_, right_;
};

}  // namespace

bool suits_tensor_cores(const GpuContext& context, const Region& region) {
  const ir::Node& contraction = context.graph[region.members[0]];
  const DType dtype = contraction.type.dtype;
  return (dtype == bf16 || dtype == f16) &&
         std::all_of(contraction.operands.begin(), contraction.operands.end(),
                     [&](ir::ValueId id) { return context.graph[id].type.dtype == dtype; });
}

namespace {

/// Returns why an operand is not copied; empty if it is.
std::string why_not_copied(const TensorParts& parts, const Side& side, const char* name) {
  if (parts.copies(side)) return "";
  const ElementwiseProgram& program = side.operand.operand.program;
  const bool loads = program.size() == 1 && program[0].kind == ElementwiseInstruction::Kind::load &&
                     program[0].dtype == parts.product.operands.dtype;
  return fmt::format(
      "its {} operand {}", name,
      loads ? "is not in aligned chunks of 16 bytes, or is overwritten" : "is computed where it is read");
}

/// Returns why a matmul does not use warpgroups on a GPU that has them.
std::string why_not_by_wgmma(const TensorParts& parts) {
  for (const auto& why :
       {why_not_copied(parts, parts.product.left, "left"), why_not_copied(parts, parts.product.right, "right")})
    if (!why.empty()) return why;
  return "smaller tiles end first";
}

}  // namespace

std::vector<KernelContext::Built> lower_tensor_product(const GpuContext& context, const Region& region) {
  const bool warpgroups = context.gpu.wgmma;
  const TensorParts parts(context, region);
  const ProductOperands& o = parts.product.operands;
  const bool suits =
      warpgroups && !o.k.is(0) && parts.copies(parts.product.left) && parts.copies(parts.product.right);
  const auto plans = plan_tensor_product(context.gpu, o.batch.value(), o.m.value(), o.n.value(), o.k.value(), suits);
  const TensorPlan& plan = plans[context.candidate];
  auto built = plan.tile.of_warpgroups ? lower_wgmma_product(context, region, plan)
                                       : TensorProduct(context, region, plan).run(context, region);
  if (warpgroups && !plan.tile.of_warpgroups)
    built[0].launch.info.missed.push_back({Multiplier::wgmma, why_not_by_wgmma(parts)});
  name_candidates(context, plans, built);
  return built;
}

}  // namespace lathe::gpu
