#include "passes/memory/block_placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lathe {

namespace {

using Block = MemoryPlan::Block;

/// The upper edge of the placed blocks over the launches: adjacent segments, each of one height.
class Skyline {
 public:
  struct Segment {
    int first, last;
    std::int64_t height;
  };

  explicit Skyline(int launches) : segments_{{0, launches - 1, 0}} {}

  std::size_t lowest() const {
    const auto lower = [](const Segment& a, const Segment& b) { return a.height < b.height; };
    return static_cast<std::size_t>(std::min_element(segments_.begin(), segments_.end(), lower) - segments_.begin());
  }
  const Segment& operator[](std::size_t i) const { return segments_[i]; }

  /// Raises a segment to its lower neighbor. There must be more than one segment.
  void raise(std::size_t i) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const std::int64_t left = i > 0 ? segments_[i - 1].height : none;
    const std::int64_t right = i + 1 < segments_.size() ? segments_[i + 1].height : none;
    segments_[i].height = std::min(left, right);
    merge();
  }

  /// Puts a block onto a segment in which it fits.
  void put(std::size_t i, const Block& block) {
    const Segment below = segments_[i];
    std::vector<Segment> now;
    if (below.first < block.first) now.push_back({below.first, block.first - 1, below.height});
    now.push_back({block.first, block.last, below.height + block.bytes});
    if (block.last < below.last) now.push_back({block.last + 1, below.last, below.height});
    const auto at = segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
    segments_.insert(at, now.begin(), now.end());
    merge();
  }

 private:
  void merge() {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < segments_.size(); ++i)
      if (segments_[i].height == segments_[kept].height)
        segments_[kept].last = segments_[i].last;
      else
        segments_[++kept] = segments_[i];
    segments_.resize(kept + 1);
  }

  std::vector<Segment> segments_;
};

/// Places the blocks from the bottom, by bytes * lifetime ^ `power` if several fit; returns the end of the last one.
std::int64_t segment(std::vector<Block>& blocks, double power) {
  int launches = 1;
  std::vector<std::pair<double, Block*>> left;
  for (Block& block : blocks) {
    launches = std::max(launches, block.last + 1);
    left.emplace_back(static_cast<double>(block.bytes) * std::pow(block.last - block.first + 1, power), &block);
  }
  std::stable_sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::int64_t end = 0;
  for (Skyline skyline(launches); !left.empty();) {
    const std::size_t lowest = skyline.lowest();
    const Skyline::Segment& segment = skyline[lowest];
    const auto at = std::find_if(left.begin(), left.end(), [&](const auto& entry) {
      return segment.first <= entry.second->first && entry.second->last <= segment.last;
    });
    if (at == left.end()) {
      skyline.raise(lowest);
      continue;
    }
    Block& block = *at->second;
    block.offset = segment.height;
    end = std::max(end, block.offset + block.bytes);
    skyline.put(lowest, block);
    left.erase(at);
  }
  return end;
}

}  // namespace

std::int64_t place_blocks(std::vector<Block>& blocks, std::int64_t lower_bound) {
  constexpr std::array<double, 5> powers = {1, 2, 0.5, 8, 0};
  std::vector<Block> best;
  std::int64_t least = 0;
  for (const double power : powers) {
    const std::int64_t end = segment(blocks, power);
    if (!best.empty() && end >= least) continue;
    best = blocks;
    least = end;
    if (least == lower_bound) break;
  }
  blocks = std::move(best);
  return least;
}

}  // namespace lathe
