#include "passes/lowering/block_sums.h"

namespace lathe {

using kernel::Builder;

DType total_type(ScalarOp op, DType compute) { return op == ScalarOp::add && compute == f32 ? f64 : compute; }

bool adds_in_blocks(ScalarOp op, DType compute, std::optional<std::int64_t> terms) {
  return total_type(op, compute) != compute && (!terms || *terms > block_terms);
}

BlockTotal::BlockTotal(Builder& b, ScalarOp op, kernel::Value identity)
    : b_(&b),
      op_(op),
      compute_(identity.type.scalar),
      total_(b.var(b.cast(identity, total_type(op, identity.type.scalar)))) {}

void BlockTotal::add(kernel::Value block) {
  b_->set(total_, b_->apply(op_, {b_->get(total_), b_->cast(block, total_.type.scalar)}));
}

kernel::Value BlockTotal::get() const { return b_->cast(b_->get(total_), compute_); }

void for_ranges(Builder& b, Builder::Bound lo, Builder::Bound hi, std::int64_t length,
                const std::function<void(kernel::Value first, kernel::Value end)>& body) {
  const kernel::Value begin = b.bound(lo), end = b.bound(hi);
  const auto count = b.constant_value(end - begin);
  b.for_loop(begin, end, length, [&](kernel::Value first) {
    const kernel::Value next = first + length;
    body(first, count && *count % length == 0 ? next : kernel::min(next, end));
  });
}

void for_blocks(Builder& b, Builder::Bound lo, Builder::Bound hi, std::int64_t step, const Builder::Body& body,
                const std::function<void()>& end_of_block) {
  for_ranges(b, lo, hi, block_terms * step, [&](kernel::Value first, kernel::Value end) {
    b.for_loop(first, end, step, body);
    end_of_block();
  });
}

}  // namespace lathe
