#include "passes/gpu/attention/block/attention_steps.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/mma.h"

namespace lathe::gpu {

using kernel::Value;

int copied_steps(const AttentionStages& stages, const AttentionTile& tile, int width, bool along, const Dim& count) {
  const auto known = count.value();
  int steps = stages.steps;
  const std::int64_t slot = stages.slot_bytes / static_cast<std::int64_t>(size_in_bytes(bf16));
  const auto fits = [&] {
    return (along ? std::int64_t{width} * tile.stride(steps) : std::int64_t{steps} * tile.stride(width)) <= slot;
  };
  while (steps > kernel::mma_depth && (!fits() || (known && steps / 2 >= *known))) steps /= 2;
  return steps;
}

bool AttentionSteps::Product::copies() const {
  return std::any_of(operands.begin(), operands.end(), [](const StagedOperand* o) { return o->copied(); });
}

AttentionSteps::AttentionSteps(KernelContext& context, const AttentionTile& tile)
    : context_(context), b_(context.builder), tile_(tile) {}

void AttentionSteps::begin() {
  if (slots() == 1) return;
  next_slot_ = b_.var(b_.index(0));
  prefetched_ = b_.var(b_.constant_int(boolean, 0));
}

/// Whether the matmul is known to have steps; only then does it start the copies of the next one.
bool AttentionSteps::goes(const Product& product) { return product.count.value().value_or(0) > 0; }

void AttentionSteps::copy(const Product& product, const ScorePosition& tile, Value step, Value thread, Value slot) {
  for (StagedOperand* o : product.operands)
    if (o->copied()) o->copy(tile, step, thread, slot);
}

void AttentionSteps::start(std::vector<const Product*> products, const ScorePosition& here, std::optional<Next> next,
                           Value thread) {
  products_ = std::move(products);
  at_ = 0;
  here_ = here;
  next_ = std::move(next);
  under_way_ = !products_.empty() && products_[0]->copies();
  if (!under_way_) return;
  b_.if_(kernel::logical_not(b_.get(*prefetched_)),
         [&] { copy(*products_[0], here_, b_.index(0), thread, b_.get(*next_slot_)); });
  b_.set(*prefetched_, b_.constant_int(boolean, 0));
  commit_copies(b_);
}

/// Starts the copies for the work after the running matmul.
void AttentionSteps::follow(const Product* after, Value thread, Value slot) {
  if (after) {
    if (after->copies()) copy(*after, here_, b_.index(0), thread, slot);
  } else if (next_ && products_[0]->copies()) {
    b_.set(*prefetched_, next_->more);
    b_.if_(next_->more, [&] { copy(*products_[0], next_->tile, b_.index(0), thread, slot); });
  }
}

void AttentionSteps::run(const Product& product, Value thread, const std::function<void(Value, Value)>& multiplied) {
  LATHE_ASSERT(at_ < products_.size() && products_[at_] == &product);
  const Product* after = ++at_ < products_.size() ? products_[at_] : nullptr;
  const int steps = product.steps();
  const Value count = context_.dim(product.count);
  if (product.copies() && !under_way_) {
    copy(product, here_, b_.index(0), thread, b_.get(*next_slot_));
    commit_copies(b_);
  }
  const auto bring = [&](Value first) {
    for (StagedOperand* o : product.operands)
      if (!o->copied()) o->bring(here_, first, thread);
  };
  bring(b_.index(0));
  b_.for_loop(0, count, steps, [&](Value first) {
    const Value slot = next_slot_ ? b_.get(*next_slot_) : b_.index(0), later = first + steps;
    if (next_slot_) wait_copies(b_, 0);
    for (StagedOperand* o : product.operands)
      if (!o->copied()) o->put(thread, slot);
    b_.barrier();
    if (next_slot_) {
      const Value other = 1 - slot;
      const auto others = [&] {
        if (product.copies()) copy(product, here_, later, thread, other);
      };
      const auto last = [&] {
        if (goes(product)) follow(after, thread, other);
      };
      const auto known = product.count.value();
      known && *known <= steps ? last() : b_.if_(later < count, others, last);
      commit_copies(b_);
      b_.set(*next_slot_, other);
    }
    bring(later);  // overlaps with the multiplications
    multiplied(slot, first);
    if (!next_slot_) b_.barrier();
  });
  under_way_ = after && after->copies() && goes(product);
}

}  // namespace lathe::gpu
