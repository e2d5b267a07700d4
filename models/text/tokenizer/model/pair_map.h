#pragma once

#include <cstdint>
#include <vector>

namespace lathe::text {

/// A hash map from pairs of 32-bit numbers, with open addressing.
template <class Value>
class PairMap {
 public:
  static std::uint64_t key(std::uint32_t first, std::uint32_t second) {
    return static_cast<std::uint64_t>(first) << 32 | second;
  }

  /// Returns the value of a key, inserted if missing. The key must not be all ones.
  Value& operator[](std::uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[position(key)];
    if (slot.key == vacant) {
      slot.key = key;
      ++size_;
    }
    return slot.value;
  }

  const Value* find(std::uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[position(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  const Value* find(std::uint32_t first, std::uint32_t second) const { return find(key(first, second)); }

  std::size_t size() const { return size_; }

  /// Calls visit(key, value) for all entries. The order depends only on the inserted keys and their order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_)
      if (slot.key != vacant) visit(slot.key, slot.value);
  }

 private:
  static constexpr std::uint64_t vacant = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = vacant;
    Value value{};
  };

  /// Returns the position of the key, or the position at which to insert it.
  std::size_t position(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15u >> shift_);
    while (slots_[at].key != key && slots_[at].key != vacant) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : 2 * old.size(), Slot{});
    shift_ = old.empty() ? 60 : shift_ - 1;
    for (Slot& slot : old)
      if (slot.key != vacant) slots_[position(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  int shift_ = 64;  ///< 64 - (number of bits of a position)
};

}  // namespace lathe::text
