#include "passes/gpu/attention/block/attention_tile.h"

namespace lathe::gpu {

using kernel::Value;

WarpPart::WarpPart(Value slot, int width)
    : columns(width / 2),
      row(slot / kernel::warp_threads / 2 * rows),
      column(slot / kernel::warp_threads % 2 * columns),
      lane(slot % kernel::warp_threads) {}

Value WarpPart::pair_row(Value pair) const { return row + lane / 4 + pair % 2 * 8; }
Value WarpPart::pair_column(Value pair) const { return column + lane % 4 * 2 + pair / 2 * 8; }

}  // namespace lathe::gpu
