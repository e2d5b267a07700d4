#include "passes/cpu/gemm/blocked/blocked_operands.h"

#include <algorithm>

#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/plan/gemm_fit.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

BlockedOperands::BlockedOperands(Builder& b, const GemmPlan& plan, const GemmOperand& lhs, const GemmOperand& rhs)
    : b_(b),
      plan_(plan),
      tile_(plan.tile),
      lhs_(lhs),
      rhs_(rhs),
      unit_(plan.tile.pairs() ? 2 : 1),
      left_rows_(plan.lhs == Source::loaded && plan.tile.lanes % plan.tile.mr == 0 ? plan.tile.lanes : plan.tile.mr) {
}

int BlockedOperands::most_rows() const { return floor_to(tile_.mc, left_rows_); }

void BlockedOperands::set_sizes(const GemmSizes& sizes, Value steps) {
  sizes_ = sizes;
  steps_ = steps;
}

void BlockedOperands::allocate() {
  if (plan_.lhs == Source::loaded)
    left_ = b_.alloc(tile_.packed(), unit_ * (std::int64_t{left_rows_} * tile_.kc + tile_.lanes),
                     kernel::Space::stack, "left");
  if (plan_.rhs == Source::loaded)
    right_ = b_.alloc(tile_.packed(), unit_ * std::int64_t{tile_.nc} * tile_.kc, kernel::Space::stack, "right");
}

void BlockedOperands::pack_left(const GemmTask& t, const GemmPass& p, Value m) {
  const MicroPanelSource from{t.batch, m, sizes_.m, p.k0, p.depth, sizes_.k, left_rows_, lhs_.axis, &lhs_.load};
  emit_pack_micro_panel(b_, tile_, from, {.buffer = left_, .base = b_.index(0), .overrun = true});
}

void BlockedOperands::pack_right(const GemmTask& t, const GemmPass& p) {
  b_.for_loop(t.n0, t.n1, tile_.n_step(), [&](Value n) {
    const MicroPanelSource from{t.batch, n, sizes_.n, p.k0, p.depth, sizes_.k, tile_.n_step(), rhs_.axis, &rhs_.load};
    emit_pack_micro_panel(b_, tile_, from, {.buffer = right_, .base = (n - t.n0) * tile_.kc});
  });
}

BlockedOperands::Element BlockedOperands::left(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
  if (plan_.lhs == Source::direct) {
    std::vector<Value> rows;
    for (int i = 0; i < at.rows; ++i) rows.push_back(i == 0 ? at.m : min(at.m + i, sizes_.m - 1));
    return [this, t, p, rows](Value k, int i) { return lhs_.load(t.batch, rows[i], p.k0 + k, lhs_.axis, 1, {}); };
  }
  const bool packed = plan_.lhs == Source::packed;
  const Buffer buffer = packed ? lhs_.packed : left_;
  Value base = at.m - at.first;
  if (packed) {
    const Value micro_panels = b_.ceil_div(sizes_.m, tile_.mr);
    base = ((lhs_.batch_in_workspace(t.batch) * micro_panels + at.m / tile_.mr) * steps_ + p.k0) * tile_.mr;
  }
  const int width = packed ? tile_.mr : left_rows_;
  return [this, buffer, base, width](Value k, int i) {
    return b_.load(buffer, (base + (k * width + i)) * unit_, unit_);
  };
}

BlockedOperands::Element BlockedOperands::right(const GemmTask& t, const GemmPass& p, Value n, bool masked) {
  const int lanes = tile_.lanes;
  if (plan_.rhs == Source::direct) {
    std::vector<Value> masks(static_cast<std::size_t>(tile_.nv));
    for (int v = 0; masked && v < tile_.nv; ++v) masks[v] = b_.tail_mask(sizes_.n - n - v * lanes, lanes);
    return [this, t, p, n, masks, lanes](Value k, int v) {
      return rhs_.load(t.batch, n + v * lanes, p.k0 + k, LaneAxis::row, lanes, masks[v]);
    };
  }
  const int bytes = lanes * static_cast<int>(size_in_bytes(tile_.compute));
  if (plan_.rhs == Source::packed)
    return [this, t, p, n, lanes, bytes](Value k, int v) {
      return b_.load(rhs_.packed, packed_right(t, p, n, k, v), unit_ * lanes, {}, bytes);
    };
  return [this, base = (n - t.n0) * tile_.kc, lanes, bytes](Value k, int v) {
    return b_.load(right_, (base + (k * tile_.n_step() + v * lanes)) * unit_, unit_ * lanes, {}, bytes);
  };
}

Builder::Body BlockedOperands::prefetch_left(const GemmTask& t, const GemmPass& p, const TilePosition& at) {
  return [this, t, p, at](Value k) { lhs_.prefetch(t.batch, at.m + tile_.lanes, p.k0 + k); };
}

Value BlockedOperands::packed_right(const GemmTask& t, const GemmPass& p, Value n, Value k, int v) {
  const int step = tile_.panel_step(), vectors = step / tile_.lanes;
  const Value micro_panels = b_.ceil_div(sizes_.n + plan_.remainder, step);
  const Value micro_panel = rhs_.batch_in_workspace(t.batch) * micro_panels + n / step + v / vectors;
  return ((micro_panel * steps_ + p.k0 + k) * step + v % vectors * tile_.lanes) * unit_;
}

Builder::Body BlockedOperands::prefetch_right(const GemmTask& t, const GemmPass& p, const TilePosition& at,
                                              bool one_pass) {
  if (plan_.rhs == Source::packed && plan_.prefetch_bytes > 0)
    return [this, t, p, n = at.n, ahead = plan_.prefetch_bytes / size_in_bytes(tile_.packed())](Value k) {
      b_.prefetch(rhs_.packed, packed_right(t, p, n, k, 0) + static_cast<std::int64_t>(ahead));
    };
  if (!plan_.prefetch_right || !rhs_.prefetch) return {};
  const auto prefetch = [this, batch = t.batch](int vectors, Value n, Value k0) -> Builder::Body {
    return [this, batch, vectors, n, k0](Value k) {
      for (int v = 0; v < vectors; ++v) rhs_.prefetch(batch, n + v * tile_.lanes, k0 + k);
    };
  };
  if (one_pass) return prefetch(tile_.nv, at.n, b_.index(plan_.prefetch_steps));
  const auto rows = static_cast<int>(std::min<std::int64_t>(*b_.constant_value(sizes_.m), most_rows()));
  const int row_blocks = (rows + tile_.mr - 1) / tile_.mr, share = (tile_.nv + row_blocks - 1) / row_blocks;
  const Value beside = at.n + tile_.n_step(), more = beside < t.n1;
  const Value n = b_.select(more, beside, t.n0) + (at.m - t.m0) / tile_.mr * (share * tile_.lanes);
  return prefetch(share, n, b_.select(more, p.k0, p.k0 + tile_.kc));
}

}  // namespace lathe::cpu
