#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Hash table of the nodes of a growing graph; stores 32 bits of each hash. Nodes with operands are stored near
/// others with the same last operand, so that graphs built in order have good locality. Overflowing nodes and nodes
/// without operands use open addressing in a power of two of slots, at most half full.
class NodeTable {
 public:
  /// Returns the first node with this hash and these operands, in any order, for which `equal(id)` is true; otherwise
  /// an invalid id.
  template <class Equal>
  ValueId find(std::size_t hash, std::span<const ValueId> operands, Equal equal) const {
    const auto kept = static_cast<std::uint32_t>(hash);
    const auto is = [&](const Slot& slot) { return slot.hash == kept && equal(slot.id); };
    if (const ValueId last = last_of(operands); last.valid())
      for (std::size_t at = near_start(last); at < near_start(last) + near_slots; ++at) {
        if (at >= near_.size() || !near_[at].id.valid()) return {};
        if (is(near_[at])) return near_[at].id;
      }
    if (slots_.empty()) return {};
    for (std::size_t at = kept & mask(); slots_[at].id.valid(); at = (at + 1) & mask())
      if (is(slots_[at])) return slots_[at].id;
    return {};
  }

  void add(std::size_t hash, std::span<const ValueId> operands, ValueId id) {
    const Slot slot{static_cast<std::uint32_t>(hash), id};
    const ValueId last = last_of(operands);
    if (last.valid() && place_near(last, slot)) return;
    if (2 * ++size_ > slots_.size()) resize(slots_.empty() ? 64 : 2 * slots_.size());
    place(slot);
  }

  /// Reserves space for `nodes` nodes without operands.
  void reserve(std::size_t nodes) {
    if (2 * nodes > slots_.size()) resize(std::bit_ceil(2 * nodes));
  }
  void clear() { *this = {}; }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    ValueId id;
  };
  static constexpr std::size_t near_slots = 8;  // per last operand, overlapping: start at two per node
  static ValueId last_of(std::span<const ValueId> operands) {
    ValueId last;
    for (const ValueId operand : operands)
      if (operand > last) last = operand;
    return last;
  }
  static std::size_t near_start(ValueId last) { return 2 * static_cast<std::size_t>(last.index); }
  std::size_t mask() const { return slots_.size() - 1; }

  bool place_near(ValueId last, const Slot& slot) {
    const std::size_t start = near_start(last);
    if (near_.size() < start + near_slots) near_.resize(start + near_slots);
    for (std::size_t at = start; at < start + near_slots; ++at)
      if (!near_[at].id.valid()) {
        near_[at] = slot;
        return true;
      }
    return false;
  }

  void place(const Slot& slot) {
    std::size_t at = slot.hash & mask();
    while (slots_[at].id.valid()) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void resize(std::size_t slots) {
    std::vector<Slot> old(slots);
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.id.valid()) place(slot);
  }

  std::vector<Slot> near_;  // two per node
  std::vector<Slot> slots_;
  std::size_t size_ = 0;  // used entries of slots_
};

}  // namespace lathe::ir
