#include "models/text/tokenizer/model/merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace lathe::text {

namespace {

constexpr std::size_t few = 40;
constexpr std::uint32_t none = UINT32_MAX;

}  // namespace

void MergeTable::apply(std::vector<Symbol>& symbols) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= few) {
    apply_to_few(symbols);
  } else {
    apply_to_many(symbols);
  }
}

void MergeTable::apply_to_few(std::vector<Symbol>& symbols) const {
  std::array<Merge, few> merges;  // of each symbol with the next one
  std::size_t count = symbols.size();
  const auto look_up = [&](std::size_t i) {
    const Merge* found = find(symbols[i].id, symbols[i + 1].id);
    merges[i] = found ? *found : Merge{none, 0};
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const auto least = std::min_element(merges.begin(), merges.begin() + static_cast<std::ptrdiff_t>(count - 1),
                                        [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (least->rank == none) break;
    const auto at = static_cast<std::size_t>(least - merges.begin());
    symbols[at] = {least->id, symbols[at].size + symbols[at + 1].size};
    --count;
    for (std::size_t i = at + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = at; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (at > 0) look_up(at - 1);
    if (at + 1 < count) look_up(at);
  }
  symbols.resize(count);
}

void MergeTable::apply_to_many(std::vector<Symbol>& symbols) const {
  struct Link {
    std::uint32_t before = none, after = none;
    Merge merge{none, 0};  ///< with the next symbol
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<Link> links(count);
  std::vector<std::uint64_t> keys;  // rank and position
  const auto look_up = [&](std::uint32_t i) {
    const Merge* found = links[i].after == none ? nullptr : find(symbols[i].id, symbols[links[i].after].id);
    links[i].merge = found ? *found : Merge{none, 0};
    return found != nullptr;
  };
  const auto key = [&](std::uint32_t i) { return static_cast<std::uint64_t>(links[i].merge.rank) << 32 | i; };
  for (std::uint32_t i = 0; i < count; ++i)
    links[i] = {i > 0 ? i - 1 : none, i + 1 < count ? i + 1 : none, {none, 0}};
  for (std::uint32_t i = 0; i < count; ++i)
    if (look_up(i)) keys.push_back(key(i));
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue(std::greater<>{},
                                                                                       std::move(keys));
  while (!queue.empty()) {
    const std::uint64_t top = queue.top();
    queue.pop();
    const auto at = static_cast<std::uint32_t>(top);
    if (symbols[at].size == 0 || links[at].merge.rank == none || key(at) != top) continue;  // merged meanwhile
    const std::uint32_t right = links[at].after;
    symbols[at] = {links[at].merge.id, symbols[at].size + symbols[right].size};
    symbols[right].size = 0;
    links[at].after = links[right].after;
    if (links[at].after != none) links[links[at].after].before = at;
    if (look_up(at)) queue.push(key(at));
    const std::uint32_t before = links[at].before;
    if (before != none && look_up(before)) queue.push(key(before));
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
}

}  // namespace lathe::text
