#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Finds nodes of a growing graph by a hash: open addressing, a power of two of slots, at most half of them taken.
class NodeTable {
 public:
  /// The first node with this hash for which `equal(id)` holds; invalid where there is none.
  template <class Equal>
  ValueId find(std::size_t hash, Equal equal) const {
    if (slots_.empty()) return {};
    for (std::size_t at = hash & mask(); slots_[at].id.valid(); at = (at + 1) & mask())
      if (slots_[at].hash == hash && equal(slots_[at].id)) return slots_[at].id;
    return {};
  }

  void add(std::size_t hash, ValueId id) {
    if (2 * ++size_ > slots_.size()) grow();
    place({hash, id});
  }

  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    std::size_t hash = 0;
    ValueId id;
  };
  std::size_t mask() const { return slots_.size() - 1; }

  void place(const Slot& slot) {
    std::size_t at = slot.hash & mask();
    while (slots_[at].id.valid()) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.id.valid()) place(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace lathe::ir
