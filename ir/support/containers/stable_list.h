#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace lathe {

/// A list whose elements keep their addresses while it grows and when it is moved. Stores blocks of `block` elements.
template <class T, std::size_t block = 32>
class StableList {
 public:
  using value_type = T;

  StableList() = default;
  StableList(const StableList& other) {
    blocks_.reserve(other.blocks_.size());
    for (const T& item : other) push_back(item);
  }
  StableList(StableList&& other) noexcept : blocks_(std::move(other.blocks_)), size_(std::exchange(other.size_, 0)) {
    other.blocks_.clear();
  }
  StableList& operator=(StableList other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~StableList() { shrink(0); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return *at(i); }
  const T& operator[](std::size_t i) const { return *at(i); }
  T& back() { return *at(size_ - 1); }
  const T& back() const { return *at(size_ - 1); }

  void push_back(T item) {
    if (size_ == blocks_.size() * block) blocks_.push_back(std::make_unique_for_overwrite<Block>());
    ::new (static_cast<void*>(at(size_))) T(std::move(item));
    ++size_;
  }
  /// Removes all elements from number `size` on.
  void shrink(std::size_t size) {
    while (size_ > size) std::destroy_at(at(--size_));
    blocks_.resize((size_ + block - 1) / block);
  }

  /// Iterates over the elements by number.
  template <class List, class Item>
  class Cursor {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Item*;
    using reference = Item&;

    Cursor() = default;
    Cursor(List& list, std::size_t i) : list_(&list), i_(i) {}
    Item& operator*() const { return (*list_)[i_]; }
    Item* operator->() const { return &(*list_)[i_]; }
    Cursor& operator++() {
      ++i_;
      return *this;
    }
    Cursor operator++(int) { return std::exchange(*this, Cursor(*list_, i_ + 1)); }
    bool operator==(const Cursor&) const = default;

   private:
    List* list_ = nullptr;
    std::size_t i_ = 0;
  };
  auto begin() { return Cursor<StableList, T>(*this, 0); }
  auto end() { return Cursor<StableList, T>(*this, size_); }
  auto begin() const { return Cursor<const StableList, const T>(*this, 0); }
  auto end() const { return Cursor<const StableList, const T>(*this, size_); }

 private:
  struct Block {
    alignas(T) std::byte bytes[block * sizeof(T)];
  };
  T* at(std::size_t i) const { return std::launder(reinterpret_cast<T*>(blocks_[i / block]->bytes) + i % block); }

  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace lathe
