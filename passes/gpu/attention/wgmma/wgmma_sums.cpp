#include "passes/gpu/attention/wgmma/wgmma_sums.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;

WgmmaSums::WgmmaSums(KernelContext& context, const GpuContext& lowering, const AttentionParts::OutputProduct& part)
    : b_(context.builder), output_(context, lowering, part) {}

std::vector<int> WgmmaSums::lanes(int depth) {
  constexpr int least = 16;  // columns of the smallest wgmma
  std::vector<int> found;
  for (int left = depth; left > 0; left -= 2 * found.back()) {
    const int most = left >= kernel::wgmma_columns ? kernel::wgmma_columns : kernel::swizzle_side;
    const auto needed = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(left, least))));
    found.push_back(std::min(most, needed) / 2);
  }
  return found;
}

int WgmmaSums::registers(const std::vector<const AttentionParts::OutputProduct*>& outputs) {
  int all = 0;
  for (const auto* output : outputs)
    for (const int each : lanes(static_cast<int>(*output->depth.value()))) all += each;
  return all;
}

void WgmmaSums::declare() {
  sums_.clear();
  for (const int lanes : lanes(static_cast<int>(*part().depth.value())))
    sums_.push_back(zero_vectors(b_, {f32, lanes}, 1)[0]);
}

void WgmmaSums::clear() { gpu::clear(b_, sums_); }

void WgmmaSums::add(Value weights, const std::function<kernel::SwizzledTiles(int depth)>& right) {
  int first = 0;
  for (const kernel::Var sums : sums_) {
    wgmma(b_, sums, weights, right(first));
    first += 2 * sums.type.lanes;
  }
}

void WgmmaSums::scale(ScalarOp op, const std::vector<Value>& by) {
  for (const kernel::Var sums : sums_) {
    std::vector<int> lanes;
    for (int i = 0; i < sums.type.lanes; ++i) lanes.push_back(i % 4 / 2);
    const Value factors = b_.shuffle(b_.cast(by[0], f32), b_.cast(by[1], f32), lanes);
    b_.set(sums, b_.apply(op, {b_.get(sums), factors}));
  }
}

void finish_sums(kernel::Builder& b, AttentionOutput& output, kernel::Buffer sums, int lanes, Value outer,
                 Value position, Value depth, Value thread) {
  const auto pair = [&](Value i) {
    const Value own = position + WgmmaPositions::first_row(thread) + i % 2 * WgmmaPositions::row_step;
    output.finish(outer, own, i / 2 * 8 + WgmmaPositions::first_column(thread) + depth, b.load(sums, i * 2, 2));
  };
  b.for_loop(0, lanes / 2, 1, pair, kernel::LoopKind::unroll);
}

void WgmmaSums::finish(Value outer, Value first, Value thread) {
  int first_depth = 0;
  for (const kernel::Var sums : sums_) {
    const int lanes = sums.type.lanes;
    const kernel::Buffer kept = b_.alloc(f32, lanes, kernel::Space::register_, "sums");
    b_.store(kept, 0, b_.get(sums));
    finish_sums(b_, output_, kept, lanes, outer, first, b_.index(first_depth), thread);
    first_depth += 2 * lanes;
  }
}

}  // namespace lathe::gpu
