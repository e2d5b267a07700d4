#include "passes/memory/memory_planner.h"

#include <algorithm>
#include <numeric>

#include "passes/memory/block_placement.h"
#include "passes/memory/lifetimes.h"

namespace lathe {

namespace {

using Block = MemoryPlan::Block;

constexpr std::size_t most_placements = 4;
constexpr double little_waste = 0.03;

double waste_of(const MemoryPlan& plan) {
  const auto bound = static_cast<double>(std::max<std::int64_t>(plan.lower_bound, 1));
  return static_cast<double>(plan.arena_bytes - plan.lower_bound) / bound;
}

}  // namespace

MemoryPlanner::MemoryPlanner(const Program& program, int threads)
    : program_(program), threads_(threads), change_(std::max<std::size_t>(1, program.launches.size()) + 1) {
  for (const Lifetime& each : lifetimes(program))
    plan_.blocks.push_back({.buffer = each.buffer, .offset = 0, .bytes = 0, .first = each.first, .last = each.last});
}

const MemoryPlan& MemoryPlanner::plan(std::span<const std::int64_t> elements) {
  find_sizes(elements);
  for (auto at = placements_.begin(); at != placements_.end(); ++at)
    if (place_by(*at)) {
      std::rotate(placements_.begin(), at, at + 1);
      return plan_;
    }
  ++searches_;
  plan_.arena_bytes = place_blocks(plan_.blocks, plan_.lower_bound);
  verify_plan(plan_);
  if (placements_.size() == most_placements) placements_.pop_back();
  placements_.insert(placements_.begin(), placement());
  return plan_;
}

/// Computes the bytes of all blocks, the maximum that is live at one launch, and the bytes outside the arena.
void MemoryPlanner::find_sizes(std::span<const std::int64_t> elements) {
  std::fill(change_.begin(), change_.end(), 0);
  for (Block& block : plan_.blocks) {
    const ProgramBuffer& buffer = program_.buffers[block.buffer];
    block.bytes = aligned_bytes(buffer.dtype, elements[block.buffer]);
    if (buffer.kind == ProgramBuffer::Kind::scratch) block.bytes += (threads_ - 1) * scratch_stride(block.bytes);
    change_[block.first] += block.bytes;
    change_[static_cast<std::size_t>(block.last) + 1] -= block.bytes;
  }
  plan_.lower_bound = 0, plan_.peak_launch = -1;
  std::int64_t live = 0;
  for (std::size_t l = 0; l + 1 < change_.size(); ++l) {
    live += change_[l];
    if (live <= plan_.lower_bound) continue;
    plan_.lower_bound = live;
    plan_.peak_launch = static_cast<int>(l);
  }
  plan_.argument_bytes = plan_.kept_bytes = 0;
  for (std::size_t b = 0; b < program_.buffers.size(); ++b)
    if (const ProgramBuffer& buffer = program_.buffers[b]; !is_in_arena(buffer) && !buffer.slice)
      (buffer.kind == ProgramBuffer::Kind::kept ? plan_.kept_bytes : plan_.argument_bytes) +=
          aligned_bytes(buffer.dtype, elements[b]);
}

/// Returns the blocks in the order of their offsets. At each launch, a block is above the last one before it that is
/// live then.
MemoryPlanner::Placement MemoryPlanner::placement() const {
  const std::vector<Block>& blocks = plan_.blocks;
  Placement found{.order = std::vector<int>(blocks.size()), .first = {0}, .below = {}, .waste = waste_of(plan_)};
  std::iota(found.order.begin(), found.order.end(), 0);
  const auto place = [&](int b) {
    const Block& block = blocks[b];
    return std::pair(block.offset, block.offset + block.bytes);
  };
  std::ranges::stable_sort(found.order, {}, place);
  std::vector<int> top(change_.size(), -1);         // topmost block, by launch
  std::vector<int> counted_for(blocks.size(), -1);  // the last block above it
  for (const int b : found.order) {
    const Block& block = blocks[b];
    for (int l = block.first; l <= block.last; ++l) {
      const int under = std::exchange(top[l], b);
      if (under < 0 || std::exchange(counted_for[under], b) == b) continue;
      found.below.push_back(under);
    }
    found.first.push_back(found.below.size());
  }
  return found;
}

/// Places the blocks by a placement; returns false if that wastes too much.
bool MemoryPlanner::place_by(const Placement& placement) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < placement.order.size(); ++i) {
    Block& block = plan_.blocks[placement.order[i]];
    block.offset = 0;
    for (std::size_t j = placement.first[i]; j < placement.first[i + 1]; ++j) {
      const Block& under = plan_.blocks[placement.below[j]];
      block.offset = std::max(block.offset, under.offset + under.bytes);
    }
    end = std::max(end, block.offset + block.bytes);
  }
  plan_.arena_bytes = end;
  return waste_of(plan_) <= std::max(little_waste, placement.waste);
}

}  // namespace lathe
