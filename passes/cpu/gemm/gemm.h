#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/split_bf16.h"
#include "ir/machine/cpu_info.h"
#include "passes/lowering/operands/load_operand.h"
#include "passes/program/launch_info.h"

/// Schedules of the matrix product as loop IR: c[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k], with any
/// loader in front of each operand and any epilogue behind the result. They know nothing of tensors: memory is seen
/// through callbacks that emit loads and stores.
///
/// How lowering uses them:
///   GemmPlan plan = plan_gemm({.compute = f32, .cpu = cpu, .n = 384, .k = 384, ...});
///   if (plan.lhs == Source::packed) one kernel by emit_pack_lhs into a workspace of packed_lhs_elements
///   if (plan.rhs == Source::packed) one kernel by emit_pack_rhs into a workspace of packed_rhs_elements
///   one kernel by emit_gemm, whose operands carry what the plan asks for; or, if (plan.splits > 1), one by
///   emit_gemm_split_k into a workspace of split_k_sums elements a batch, and one by emit_reduce_split_k; or, if
///   (plan.panel > 0), for each panel two kernels that pack and one by emit_gemm_panel
/// Each emit_* writes one complete kernel body with one parallel loop. Bits of the result depend on the plan alone:
/// the order of summation over k is ascending for the blocked strategy, whatever its tile, but for its splits, and
/// fixed by the vector for dot products; never by the split of the parallel range or by the other sizes.
namespace lathe::cpu {

/// Blocking of a product. Register tile: mr rows x (nv * lanes) columns of accumulators.
struct GemmTile {
  DType compute = f32;  ///< f32, f64, i64 or i32: the type of operands after loading and of accumulators
  int lanes = 1;        ///< elements of `compute` in a vector register
  int mr = 8, nv = 3;
  int kc = 0;  ///< depth of a block of k
  int mc = 0;  ///< rows of a task at most: a multiple of mr (and of lanes where the left operand is loaded)
  int nc = 0;  ///< columns of a task at most: a multiple of nv * lanes
  /// Operands are packed as bf16, and a step of k is a pair of neighbouring k: packed[..][k / 2][row][2], an odd last
  /// k beside a zero. kc counts pairs; a pair has the size of an f32. compute is f32, operands are loaded as f32
  /// that bf16 holds, and their products are summed by dot_pairs.
  bool pairs = false;
  /// With pairs: the sums are made by tile_mma in blocks of mr = 32 rows and 32 columns. k is filled up with zeros to
  /// a multiple of 32, kc is a multiple of 16 pairs, and the left operand is packed as rows of k: packed[row][k].
  bool tiles = false;
  /// With tiles: operands are f32 and packed as split bf16, three terms whose sum an element is, of which tile_mma
  /// multiplies those that count: see gemm_split_bf16.h. kc is still a number of pairs of k.
  bool split_bf16 = false;
  int terms() const { return split_bf16 ? kernel::bf16_terms : 1; }
  DType packed() const { return pairs ? bf16 : compute; }
  int n_step() const { return nv * lanes; }
  bool operator==(const GemmTile&) const = default;
};

/// The register tile for a machine, with blocks for a packed right operand. The scratch of a task, mc * nc sums and
/// what it packs itself (mr or lanes, times kc; nc * kc), stays within what kernels may have.
GemmTile choose_tile(DType compute, const CpuInfo& cpu);

/// Prefetches rows row .. row + tile.lanes at one step of k, which may lie beyond the last row.
using OperandPrefetch = std::function<void(kernel::Value batch, kernel::Value row, kernel::Value k)>;

/// Where emit_gemm finds an operand.
enum class Source : std::uint8_t {
  packed,  ///< in a workspace filled by emit_pack_lhs / emit_pack_rhs
  loaded,  ///< through `load`; each task packs what it needs into scratch (left: once per tile.nc columns; right:
           ///< once per tile.mc rows)
  direct,  ///< through `load`, inside the innermost loop: nothing is packed (left: single elements; right: vectors
           ///< along row, or along k for skinny_dot)
};

struct GemmOperand {
  LaneAxis axis = LaneAxis::k;
  LoadOperand load{};          ///< loaded, direct; of split bf16 always, for sums that are computed by fma
  OperandPrefetch prefetch{};  ///< direct, along rows; may be empty
  kernel::Buffer packed{};     ///< packed; of dtype tile.compute, 64-byte aligned
  /// direct, of dot products: elements are also what `numbers` loads times a factor that `run` neighbours along k
  /// share, such as quantized numbers and their scales; 0: they are not. k is a multiple of run.
  struct Scaled {
    std::int64_t run = 0;
    LoadOperand numbers{};
    std::function<kernel::Value(kernel::Value batch, kernel::Value row, kernel::Value k)> factor{};
  };
  Scaled scaled{};
  OperandPrefetch prefetch_along_k{};  ///< direct, of dot products: of elements, or numbers, of one row; may be empty
  /// direct, of tiles: where the rows from `row` on lie, k side by side.
  std::function<kernel::Builder::Rows(kernel::Value batch, kernel::Value row, kernel::Value k)> rows_in_memory{};
  /// packed: which batch of the workspace belongs to this batch of the result; empty: the same. Such as 0 for weights
  /// that all batches share, or batch / groups for grouped heads.
  std::function<kernel::Value(kernel::Value batch)> packed_batch{};

  kernel::Value batch_in_workspace(kernel::Value batch) const { return packed_batch ? packed_batch(batch) : batch; }
};

enum class GemmStrategy : std::uint8_t {
  blocked,     ///< register tiles over blocks of k; the right operand packed, loaded, or direct along row
  tiles,       ///< blocks of sums by tile_mma over blocks of k; the right operand packed or loaded
  skinny_dot,  ///< few rows, right operand contiguous in k: vectors along k, streamed once, summed across lanes last
};

struct GemmPlan {
  GemmStrategy strategy = GemmStrategy::blocked;
  GemmTile tile;
  Source lhs = Source::loaded, rhs = Source::packed;
  /// k is cut into so many equal splits, each summed by tasks of its own, and their sums are added in order.
  int splits = 1;
  /// Not 0: k is known and gone through in panels of so many, one after another. Each has both operands packed for
  /// itself, so that a long k takes little memory, and adds to the sums of those before it.
  int panel = 0;
  /// Where k is summed in one go, results go to the epilogue out of registers; its code stands once for each vector
  /// of a tile then.
  bool register_epilogue = false;
  /// A direct right operand comes from a slow last-level cache or memory: a few k of it at a time go to all rows of
  /// the left one, of which there is a known number, columns after columns, and each register tile prefetches its
  /// share of those that come next. Where all of k is one block, a tile prefetches its own columns a few k on.
  bool prefetch_right = false;
  int prefetch_steps = 0;  ///< how many k on
  /// Of skinny_dot: each column is read to its end before the next, so that a large right operand comes from memory
  /// in one stream.
  bool columns_in_turn = false;
  /// This many of the columns, the last ones, fill a small part of a vector and are summed apart: as dot products
  /// where the left operand, which is direct, is read along k (then the known k is short enough for scratch), else
  /// with lanes along its rows. The other columns are whole vectors. Of the blocked strategy.
  int remainder = 0;
  int fewest_tasks = 0;                 ///< else row blocks become smaller
  std::int64_t overlap_depth = 0;       ///< k at least in whose time the memory of an epilogue answers
  std::int64_t prefetch_bytes = 0;      ///< prefetch distance of dot products; 0: none
  std::vector<MissedPath> missed = {};  ///< ways that the machine has for operands of this dtype
  bool left_in_l1 = false;  ///< of dot products: then the columns of a tile stay in registers for all rows
};

/// What is known when a product is compiled. Where `lhs_loadable` or `rhs_loadable`, the operand is plain loads of
/// compute-typed elements, so that loading one element several times costs little; others convert or compute.
struct GemmQuery {
  DType compute = f32;
  CpuInfo cpu;
  std::optional<std::int64_t> batch{}, m{}, n{}, k{};  ///< empty: known at run time only
  LaneAxis lhs_axis = LaneAxis::k, rhs_axis = LaneAxis::k;
  bool lhs_loadable = true, rhs_loadable = true;
  bool rhs_shared = false;      ///< the same right operand for all batches
  bool pairs = false;           ///< bf16 operands on a machine with dot_pairs: see GemmTile
  bool tiles = false;           ///< operands of bf16, on a machine with tile_mma
  bool split_bf16 = false;      ///< operands of f32, on a machine with tile_mma
  bool lhs_has_rows = false;    ///< bf16 in memory, k side by side and rows at one distance
  bool epilogue_small = false;  ///< a few instructions
};

GemmPlan plan_gemm(const GemmQuery& query);

/// That plan, and others that give the same bits: register tiles, blocks, and what is packed; where sums go on from
/// one block of k to the next, none of these changes an order. `sizes` has all sizes of the runs that are to be fast:
/// no two plans are the same for them. A plan of dot products stands alone.
std::vector<GemmPlan> candidate_plans(GemmQuery query, GemmQuery sizes);

/// "8x3 tiles, tasks of 512x96, 384 deep, right packed in tasks"
std::string to_string(const GemmPlan& plan);

/// i64 values: dims, constants, or arithmetic on them (known before the parallel loop).
struct PackSizes {
  kernel::Value batch, rows, k;
  PackingSizes packing = {};  ///< of the machine
};
struct GemmSizes {
  kernel::Value batch, m, n, k;
  /// Where m or k is smaller than said when the kernel runs: which one it is then, computed in each task. Of the
  /// blocked strategy.
  struct Actual {
    kernel::Value m, k;
  };
  std::function<Actual()> actual{};
};

/// Packs the left operand: packed[batch][micro-panel of mr rows][k][mr]; rows beyond the last may be anything.
/// Parallel over batch x micro-panels.
void emit_pack_lhs(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                   LaneAxis axis, const LoadOperand& load);
/// Packs the right operand: packed[batch][micro-panel of nv * lanes rows][k][nv * lanes]; rows beyond the last may be
/// anything.
void emit_pack_rhs(kernel::Builder& b, const GemmTile& tile, const PackSizes& sizes, kernel::Buffer packed,
                   LaneAxis axis, const LoadOperand& load);

/// Elements of a workspace, as coefficients of a polynomial upper bound: batch * (rows + extra_rows) * (k + unit_of_k
/// - 1) * terms elements. (Allocate the bound, or the exact number if it is known.)
struct PackedExtent {
  std::int64_t extra_rows = 0;   ///< micro-panel - 1
  std::int64_t micro_panel = 1;  ///< rows of a micro-panel
  std::int64_t unit_of_k = 1;    ///< k is filled up to a multiple
  std::int64_t terms = 1;        ///< of an element
  std::int64_t exact(std::int64_t batch, std::int64_t rows, std::int64_t k) const {
    const auto round_up = [](std::int64_t size, std::int64_t step) { return (size + step - 1) / step * step; };
    return batch * round_up(rows, micro_panel) * round_up(k, unit_of_k) * terms;
  }
};
PackedExtent packed_lhs_extent(const GemmTile& tile);
PackedExtent packed_rhs_extent(const GemmTile& tile);

/// Consumes `lanes` consecutive results (b, m, n .. n + lanes) of one row. lanes is tile.lanes, or 1. An empty mask:
/// all are in range; else only lanes where it is true exist.
using RowEpilogue = std::function<void(kernel::Value n, int lanes, kernel::Value acc, kernel::Value mask)>;
/// Called once per place in the code where a row's results are consumed, with the row; emits what the whole row
/// shares (such as index arithmetic) and returns what to do for each vector of it. May be called several times.
using Epilogue = std::function<RowEpilogue(kernel::Value batch, kernel::Value m)>;

/// Prefetches what the epilogue reads and writes of `lanes` results (b, m, n .. n + tile.lanes); m may lie beyond the
/// last row.
using EpiloguePrefetch = std::function<void(kernel::Value batch, kernel::Value m, kernel::Value n)>;

/// The product. Parallel over batch x column blocks x row blocks; every (b, m, n) reaches the epilogue exactly once,
/// with zeros where k == 0. The operands must carry what plan.lhs and plan.rhs say. With `prefetch` the
/// blocked strategy hands a row block to the epilogue while the next row block is summed, row by row, and prefetches
/// the memory that the epilogue of this one touches; unless k is known to be short or n is not known. Then it
/// prefetches a left operand with `prefetch` too, one that is direct.
void emit_gemm(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
               const GemmOperand& rhs, const Epilogue& epilogue, const EpiloguePrefetch& prefetch = {});

/// The sums of each split of k, a multiple of plan.splits, into `sums` of tile.compute. No operand is packed ahead.
void emit_gemm_split_k(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                       const GemmOperand& rhs, kernel::Buffer sums);
/// One panel of k. `sizes.k` and the operands are the panel's own, both packed; the sums of the panels up to it lie
/// in `sums` of tile.compute, [batch][m][n rounded up to tile.lanes].
struct GemmPanel {
  kernel::Buffer sums;
  kernel::Value first;  ///< whether it is the first one, which reads no sums
  bool last = false;    ///< the results go to the epilogue instead of `sums`
};
void emit_gemm_panel(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const GemmPanel& panel, const Epilogue& epilogue);
/// Loads of a panel whose k begins at k0.
LoadOperand load_from(const LoadOperand& load, kernel::Value k0);

/// Adds up the splits and hands the results to the epilogue, each exactly once.
void emit_reduce_split_k(kernel::Builder& b, const GemmPlan& plan, const GemmSizes& sizes, kernel::Buffer sums,
                         const Epilogue& epilogue);
/// Elements of a row of `sums`, of splits and of panels.
std::int64_t columns_of_sums(const GemmTile& tile, std::int64_t n);
/// Elements of `sums` for one batch.
std::int64_t split_k_sums(const GemmPlan& plan, std::int64_t m, std::int64_t n);

}  // namespace lathe::cpu
