#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace lathe {

/// A list that stores up to `room` elements inline and more on the heap. For trivially copyable elements.
template <class T, std::uint32_t room>
class InlineList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineList() {}
  InlineList(std::span<const T> items) { assign(items); }
  InlineList(std::initializer_list<T> items) { assign({items.begin(), items.size()}); }
  InlineList(const std::vector<T>& items) { assign(items); }
  InlineList(const InlineList& other) { assign(other); }
  InlineList(InlineList&& other) noexcept { take(other); }
  InlineList& operator=(const InlineList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  InlineList& operator=(InlineList&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }
  ~InlineList() { release(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return capacity_ > room ? far_ : near_; }
  const T* data() const { return capacity_ > room ? far_ : near_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  const T& front() const { return data()[0]; }
  const T& back() const { return data()[size_ - 1]; }

  void reserve(std::size_t size) {
    if (size > capacity_) grow(static_cast<std::uint32_t>(size));
  }
  void push_back(T item) {
    if (size_ == capacity_) grow(2 * capacity_);
    data()[size_++] = item;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void assign(std::span<const T> items) {
    reserve(items.size());
    copy(items.data(), items.size(), data());
    size_ = static_cast<std::uint32_t>(items.size());
  }

  bool operator==(const InlineList& other) const {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i)
      if (!(data()[i] == other.data()[i])) return false;
    return true;
  }

 private:
  // Every program includes this header, and <algorithm> takes long to compile.
  static void copy(const T* from, std::size_t count, T* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
  }
  void grow(std::uint32_t capacity) {
    T* const items = new T[capacity];
    copy(data(), size_, items);
    release();
    far_ = items;
    capacity_ = capacity;
  }
  void release() {
    if (capacity_ > room) delete[] far_;
    capacity_ = room;
  }
  void take(InlineList& other) {
    if (other.capacity_ > room)
      far_ = other.far_;
    else
      copy(other.near_, other.size_, near_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, room);
  }

  std::uint32_t size_ = 0, capacity_ = room;
  union {
    T near_[room];
    T* far_;
  };
};

}  // namespace lathe
