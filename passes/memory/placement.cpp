#include "passes/memory/placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lathe {

namespace {

using Block = MemoryPlan::Block;

/// The upper edge of what is placed, over the launches: places side by side, each of one height.
class Skyline {
 public:
  struct Place {
    int first, last;
    std::int64_t height;
  };

  explicit Skyline(int launches) : places_{{0, launches - 1, 0}} {}

  std::size_t lowest() const {
    const auto lower = [](const Place& a, const Place& b) { return a.height < b.height; };
    return static_cast<std::size_t>(std::min_element(places_.begin(), places_.end(), lower) - places_.begin());
  }
  const Place& operator[](std::size_t i) const { return places_[i]; }

  /// Levels a place with its lower neighbour. The last place has none.
  void raise(std::size_t i) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const std::int64_t left = i > 0 ? places_[i - 1].height : none;
    const std::int64_t right = i + 1 < places_.size() ? places_[i + 1].height : none;
    places_[i].height = std::min(left, right);
    join();
  }

  /// Puts a block that fits onto a place.
  void put(std::size_t i, const Block& block) {
    const Place below = places_[i];
    std::vector<Place> now;
    if (below.first < block.first) now.push_back({below.first, block.first - 1, below.height});
    now.push_back({block.first, block.last, below.height + block.bytes});
    if (block.last < below.last) now.push_back({block.last + 1, below.last, below.height});
    const auto at = places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(i));
    places_.insert(at, now.begin(), now.end());
    join();
  }

 private:
  void join() {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < places_.size(); ++i)
      if (places_[i].height == places_[kept].height)
        places_[kept].last = places_[i].last;
      else
        places_[++kept] = places_[i];
    places_.resize(kept + 1);
  }

  std::vector<Place> places_;
};

/// Places the blocks from below, by bytes * lifetime ^ `power` where several fit; gives the end of the last.
std::int64_t place(std::vector<Block>& blocks, double power) {
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
    const Skyline::Place& place = skyline[lowest];
    const auto at = std::find_if(left.begin(), left.end(), [&](const auto& entry) {
      return place.first <= entry.second->first && entry.second->last <= place.last;
    });
    if (at == left.end()) {
      skyline.raise(lowest);
      continue;
    }
    Block& block = *at->second;
    block.offset = place.height;
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
    const std::int64_t end = place(blocks, power);
    if (!best.empty() && end >= least) continue;
    best = blocks;
    least = end;
    if (least == lower_bound) break;
  }
  blocks = std::move(best);
  return least;
}

}  // namespace lathe
