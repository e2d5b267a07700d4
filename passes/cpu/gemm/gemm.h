#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ir/hardware/cpu_info.h"
#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "passes/cpu/gemm/plan/product_sizes.h"
#include "passes/lowering/operands/load_operand.h"
#include "passes/program/launch_info.h"

/// Matmul schedules as loop IR: c[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k], with a loader for each
/// operand and an epilogue for the result. The schedules do not depend on tensors: they access memory through
/// callbacks that emit loads and stores.
///
/// How lowering uses them:
///   GemmPlan plan = plan_gemm({.compute = f32, .cpu = cpu, .n = 384, .k = 384, ...});
///   if (plan.lhs == Source::packed) one kernel by emit_pack_lhs into a workspace of packed_lhs_elements
///   if (plan.rhs == Source::packed) one kernel by emit_pack_rhs into a workspace of packed_rhs_elements
///   one kernel by emit_gemm, whose operands provide what the plan requires; or, if (plan.splits > 1), one by
///   emit_gemm_split_k into a workspace of split_k_sums elements per batch, and one by emit_reduce_split_k; or, if
///   (plan.panel > 0), for each panel two kernels that pack and one by emit_gemm_panel
/// Each emit_* writes one complete kernel body with one parallel loop. The bits of the result depend on the plan
/// alone. The blocked strategy sums over k in ascending order within a split, whatever its tile; dot products have an
/// order fixed by the vector length. The split of the parallel range and the other sizes do not matter.
namespace lathe::cpu {

/// Blocking of a matmul. Register tile: mr rows x (nv * lanes) columns of accumulators.
struct GemmTile {
  DType compute = f32;  ///< f32, f64, i64 or i32: dtype of loaded operands and of accumulators
  int lanes = 1;        ///< elements of `compute` in a vector register
  int mr = 8, nv = 3;
  int kc = 0;  ///< depth of a block of k
  int mc = 0;  ///< maximum rows of a task: a multiple of mr (and of lanes if the left operand is loaded)
  int nc = 0;  ///< maximum columns of a task: a multiple of nv * lanes
  /// How operands are packed and multiplied.
  enum class Operands : std::uint8_t {
    plain,  ///< elements of `compute`, multiplied by fma
    /// bf16, and a step of k is a pair of consecutive k: packed[..][k / 2][row][2]. An odd last k is paired with
    /// zero. kc counts pairs; a pair has the size of an f32. compute is f32: operands are loaded as f32 values that
    /// bf16 represents exactly, and dot_pairs sums their products.
    pairs,
    /// Pairs that tile_mma multiplies, in blocks of mr = 32 rows and 32 columns. k is padded with zeros to a multiple
    /// of 32, kc is a multiple of 16 pairs, and the left operand is packed as rows of k: packed[row][k].
    tiles,
    /// Tiles of f32 operands that are packed as split bf16, three terms that add up to an element. tile_mma
    /// multiplies only the significant combinations of terms: see gemm_split_bf16.h. kc is still a number of pairs of
    /// k.
    split_tiles,
  };
  Operands operands = Operands::plain;
  /// Maximum steps of k whose products one accumulator of f32 adds; 0: no limit. Its sum is then added to a total,
  /// and it restarts from zero, so that a sum of many terms loses little to rounding. Steps of dot products are
  /// vectors of k. Blocks start at multiples of this number whatever the passes, tiles and threads. The depth of a
  /// pass divides a block or is a multiple of it, unless all of k is one pass; that of tiles divides it.
  int block = 0;
  /// Maximum blocks whose total is formed by plain additions. The total of more is compensated (CompensatedTotal).
  int plain_blocks = 64;
  int part = 0;           ///< DotTile::part, of skinny_dot
  int panel_vectors = 0;  ///< vectors in a row of a micro-panel of the packed right operand; 0: nv

  bool pairs() const { return operands != Operands::plain; }
  bool tiles() const { return operands >= Operands::tiles; }
  bool split_bf16() const { return operands == Operands::split_tiles; }
  int terms() const { return split_bf16() ? kernel::bf16_terms : 1; }
  bool packs_right_like(const GemmTile& other) const {
    return operands == other.operands && panel_step() == other.panel_step();
  }
  DType packed() const { return pairs() ? bf16 : compute; }
  int n_step() const { return nv * lanes; }
  int panel_step() const { return panel_vectors > 0 ? panel_vectors * lanes : n_step(); }
  /// Whether a sum over `steps` has a single block and therefore needs no total.
  bool one_block(std::optional<std::int64_t> steps) const { return block == 0 || (steps && *steps <= block); }
  /// Maximum steps whose total is not compensated.
  std::int64_t most_plain_steps() const { return std::int64_t{plain_blocks} * block; }
  /// Whether sums over `steps`, or over an unknown number of them, may need compensated totals.
  bool may_compensate(std::optional<std::int64_t> steps) const {
    return block > 0 && (!steps || *steps > most_plain_steps());
  }
  bool operator==(const GemmTile&) const = default;
};

/// Returns the register tile for a CPU, with blocks for a packed right operand. The scratch of a task is mc * nc sums
/// and the operands that it packs (mr or lanes, times kc; nc * kc). It stays within the limit for kernels, except for
/// an unknown k, whose sums may have three numbers each: plan_gemm shrinks tasks.
GemmTile choose_tile(DType compute, const CpuInfo& cpu, const FmaBlocks& blocks = {});

/// Prefetches rows row .. row + tile.lanes at one step of k; `row` may be past the last row.
using OperandPrefetch = std::function<void(kernel::Value batch, kernel::Value row, kernel::Value k)>;

/// How emit_gemm accesses an operand.
enum class Source : std::uint8_t {
  packed,  ///< in a workspace filled by emit_pack_lhs / emit_pack_rhs
  loaded,  ///< through `load`; each task packs its part into scratch (left: once per tile.nc columns; right: once per
           ///< tile.mc rows)
  direct,  ///< through `load`, in the innermost loop, without packing (left: single elements; right: vectors along
           ///< row, or along k for skinny_dot)
};

struct GemmOperand {
  LaneAxis axis = LaneAxis::k;
  LoadOperand load{};          ///< loaded, direct; for split bf16 always, because some sums are computed by fma
  OperandPrefetch prefetch{};  ///< direct, along rows; may be empty
  kernel::Buffer packed{};     ///< packed; of dtype tile.compute, 64-byte aligned
  /// direct, of dot products: elements are what `numbers` loads times a factor that `run` consecutive k share, such
  /// as quantized numbers and their scales. k is a multiple of run; 0: not scaled.
  struct Scaled {
    std::int64_t run = 0;
    LoadOperand numbers{};
    std::function<kernel::Value(kernel::Value batch, kernel::Value row, kernel::Value k)> factor{};
  };
  Scaled scaled{};
  OperandPrefetch prefetch_along_k{};  ///< direct, of dot products: elements, or numbers, of one row; may be empty
  /// direct, of tiles: returns the memory of the rows from `row` on, in which consecutive k are adjacent.
  std::function<kernel::Builder::Rows(kernel::Value batch, kernel::Value row, kernel::Value k)> rows_in_memory{};
  /// packed: maps a batch of the result to a batch of the workspace; empty: the same. For example 0 for weights that
  /// all batches share, or batch / groups for grouped heads.
  std::function<kernel::Value(kernel::Value batch)> packed_batch{};

  kernel::Value batch_in_workspace(kernel::Value batch) const { return packed_batch ? packed_batch(batch) : batch; }
};

enum class GemmStrategy : std::uint8_t {
  blocked,     ///< register tiles over blocks of k; the right operand packed, loaded, or direct along row
  tiles,       ///< blocks of sums by tile_mma over blocks of k; the right operand packed or loaded
  skinny_dot,  ///< few rows, right operand contiguous in k: vectors along k, streamed once, lanes added up at the end
};

struct GemmPlan {
  GemmStrategy strategy = GemmStrategy::blocked;
  GemmTile tile;
  Source lhs = Source::loaded, rhs = Source::packed;
  bool copies_left = false;  ///< the direct left operand is a copy by emit_copy_rows
  /// Number of equal splits of k. Separate tasks sum each split, and their sums are added in order.
  int splits = 1;
  /// Depth of a panel, or 0. A known k is processed in panels, in order. Both operands are packed for each panel, so
  /// that a long k needs little memory; each panel adds to the sums of the previous ones.
  int panel = 0;
  /// If k is summed in one pass, results go from registers to the epilogue. Its code is then emitted once for each
  /// vector of a tile.
  bool register_epilogue = false;
  /// Set if a direct right operand comes from a slow last-level cache or memory. A block of a few k is multiplied by
  /// all rows of the left operand, whose number is known, one tile of columns after another. Each register tile
  /// prefetches its share of the next columns. If k is a single block, a tile prefetches its own columns a few k
  /// ahead.
  bool prefetch_right = false;
  int prefetch_steps = 0;  ///< prefetch distance in k
  /// Of skinny_dot: reads each column to its end before the next one, so that a large right operand is one stream
  /// from memory.
  bool columns_in_turn = false;
  /// Number of last columns that fill a small part of a vector and are summed separately, in the blocked strategy.
  /// They are dot products if the direct left operand is read along k, which is then known and short enough for
  /// scratch. Otherwise their lanes run along its rows. The other columns are whole vectors.
  int remainder = 0;
  int cores = 1;       ///< that the tasks are divided among
  int start_rows = 0;  ///< cost of starting a task, in rows: FmaBlocks::start_rows, or packing_rows
  /// Minimum rows for which the plan pays off, if the rows are known only at run time; 0: any. With fewer, split bf16
  /// does not amortize packing, and fma is faster; and a kept right operand should be read once for all rows.
  std::int64_t least_rows = 0;
  /// Minimum k whose sums take long enough for the epilogue's prefetched memory to arrive.
  std::int64_t overlap_depth = 0;
  std::int64_t prefetch_bytes = 0;      ///< prefetch distance of dot products and of a kept operand; 0: none
  std::vector<MissedPath> missed = {};  ///< multipliers that the CPU has for this dtype but the plan cannot use
  /// Of dot products: all rows of the left operand fit into L1, so each tile of columns is used for all rows.
  bool left_in_l1 = false;
};

/// Facts that are known when a matmul is compiled. With `lhs_loadable` or `rhs_loadable`, the operand is plain loads
/// of elements of `compute`, so that repeated loads of an element are cheap; other operands convert or compute.
struct GemmQuery {
  DType compute = f32;
  CpuInfo cpu;
  ProductSizes tuned = {};
  std::optional<std::int64_t> batch{}, m{}, n{}, k{};  ///< empty: known at run time only
  LaneAxis lhs_axis = LaneAxis::k, rhs_axis = LaneAxis::k;
  bool lhs_loadable = true, rhs_loadable = true;
  /// Elements of a loadable left operand that are adjacent along its axis.
  std::int64_t lhs_run = std::numeric_limits<std::int64_t>::max();
  bool lhs_shared = false;      ///< all batches have the same left operand
  bool rhs_shared = false;      ///< all batches have the same right operand
  bool rhs_fixed = false;       ///< the right operand consists of parameters that the graph does not update
  bool rhs_kept = false;        ///< also, a packed copy of it persists between runs, so packing is free; same bits
  bool few_rows = false;        ///< m is only known to be less than GemmPlan::least_rows of the plan for more rows
  bool pairs = false;           ///< bf16 operands on a CPU with dot_pairs: see GemmTile
  bool tiles = false;           ///< bf16 operands on a CPU with tile_mma
  bool split_bf16 = false;      ///< f32 operands on a CPU with tile_mma
  bool lhs_has_rows = false;    ///< bf16 in memory, k contiguous, rows at a constant distance
  bool epilogue_small = false;  ///< at most a few instructions
};

GemmPlan plan_gemm(const GemmQuery& query);
/// Returns the plan by fma for runs with fewer than the minimum rows of `more`, the plan for the query.
GemmPlan plan_few_rows(GemmQuery query, const GemmPlan& more);

/// Returns that plan, followed by others with bit-identical results, which differ in register tiles, blocks and
/// packing. Sums continue from one block of k to the next, so these do not change any order. `sizes` has all sizes of
/// the runs to optimize for; no two plans are equivalent for them. A plan of dot products has no alternatives.
std::vector<GemmPlan> candidate_plans(GemmQuery query, GemmQuery sizes);

/// "8x3 tiles, tasks of 512x96, 384 deep, right packed in tasks"
std::string to_string(const GemmPlan& plan);

/// i64 values: dims, constants, or arithmetic on them (known before the parallel loop).
struct PackSizes {
  kernel::Value batch, rows, k;
  PackingSizes packing = {};  ///< of the CPU
};
struct GemmSizes {
  kernel::Value batch, m, n, k;
  /// Sizes that the kernel computes in each task, if m or k may be smaller at run time. Blocked strategy only.
  struct Actual {
    kernel::Value m, k;
  };
  std::function<Actual()> actual{};
};

/// Packs the left operand: packed[batch][micro-panel of mr rows][k][mr]. Rows past the last one are undefined.
/// Parallel over batch x micro-panels.
void emit_pack_lhs(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                   LaneAxis axis, const LoadOperand& load);
/// Packs the right operand: packed[batch][micro-panel of panel_step() rows][k][panel_step()]. Rows past the last one
/// are undefined.
void emit_pack_rhs(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                   LaneAxis axis, const LoadOperand& load);

/// Copies an operand that is read along k: copy[batch][row][k]. Parallel over batch x rows.
void emit_copy_rows(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer copy,
                    LaneAxis axis, const LoadOperand& load);

/// Size of a workspace, as coefficients of a polynomial upper bound: batch * (rows + extra_rows) * (k + unit_of_k -
/// 1) * terms elements. Allocate the bound, or the exact number if it is known.
struct PackedExtent {
  std::int64_t extra_rows = 0;   ///< micro-panel - 1
  std::int64_t micro_panel = 1;  ///< rows of a micro-panel
  std::int64_t unit_of_k = 1;    ///< k is padded to a multiple of this
  std::int64_t terms = 1;        ///< per element
  std::int64_t exact(std::int64_t batch, std::int64_t rows, std::int64_t k) const {
    const auto round_up = [](std::int64_t size, std::int64_t step) { return (size + step - 1) / step * step; };
    return batch * round_up(rows, micro_panel) * round_up(k, unit_of_k) * terms;
  }
};
PackedExtent packed_lhs_extent(const GemmTile& tile);
PackedExtent packed_rhs_extent(const GemmTile& tile);

/// Consumes `lanes` consecutive results (b, m, n .. n + lanes) of one row. lanes is tile.lanes, or 1. With an empty
/// mask all are in range; otherwise only lanes whose mask is true.
using RowEpilogue = std::function<void(kernel::Value n, int lanes, kernel::Value acc, kernel::Value mask)>;
/// Called with the row at each place in the code that consumes a row's results; it may be called several times. Emits
/// code that the whole row shares, such as index arithmetic. Returns the function that consumes each vector of the
/// row.
using Epilogue = std::function<RowEpilogue(kernel::Value batch, kernel::Value m)>;

/// Prefetches the memory that the epilogue accesses for results (b, m, n .. n + tile.lanes); m may be past the last
/// row.
using EpiloguePrefetch = std::function<void(kernel::Value batch, kernel::Value m, kernel::Value n)>;

/// Emits the matmul, parallel over batch x column blocks x row blocks. Every (b, m, n) reaches the epilogue exactly
/// once, with zeros if k == 0. The operands must provide what plan.lhs and plan.rhs require. With `prefetch`, the
/// blocked strategy runs the epilogue of one row block, row by row, while it sums the next one. It prefetches the
/// memory that the epilogue accesses, and also a direct left operand that has a `prefetch`. It does not do so if k is
/// known to be short or n is unknown.
void emit_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
               const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch = {});

/// Stores the sums of each split of k into `sums` of tile.compute. k is a multiple of plan.splits. No operand is
/// packed beforehand.
void emit_gemm_split_k(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, kernel::Buffer sums);
/// `sums` of tile.compute holds the sums of the panels so far, like those of a single split.
struct GemmPanel {
  kernel::Buffer sums;
  kernel::Value first;  ///< whether this is the first panel, which reads no sums
};
/// Adds the sums of one panel of k to those of the previous panels. `sizes.k` and the operands are the panel's own,
/// both packed. emit_reduce_split_k() passes the sums of the last panel to the epilogue.
void emit_gemm_panel(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const GemmPanel& panel);
/// Returns loads of a panel whose k starts at k0.
LoadOperand load_from(const LoadOperand& load, kernel::Value k0);

/// Adds up the sums of the splits and passes each result to the epilogue exactly once.
void emit_reduce_split_k(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, kernel::Buffer sums,
                         const Epilogue& epilogue);
/// Returns the number of elements in a row of `sums`, for splits and panels.
std::int64_t columns_of_sums(const GemmTile& tile, std::int64_t n);
/// Returns the number of elements of `sums` per batch.
std::int64_t split_k_sums(const GemmPlan& plan, std::int64_t m, std::int64_t n);

}  // namespace lathe::cpu
