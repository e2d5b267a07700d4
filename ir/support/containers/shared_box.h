#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace lathe {

/// A std::shared_ptr in one word, for objects that graphs hold many of: the value follows its count. Null by default.
template <class T>
class SharedBox {
 public:
  SharedBox() = default;
  template <class... Args>
  static SharedBox make(Args&&... args) {
    SharedBox box;
    box.held_ = new Held{1, T(std::forward<Args>(args)...)};
    return box;
  }
  SharedBox(const SharedBox& other) : held_(other.held_) { hold(); }
  SharedBox(SharedBox&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  SharedBox& operator=(const SharedBox& other) {
    if (this != &other) SharedBox(other).swap(*this);
    return *this;
  }
  SharedBox& operator=(SharedBox&& other) noexcept {
    SharedBox(std::move(other)).swap(*this);
    return *this;
  }
  ~SharedBox() { release(); }

  explicit operator bool() const { return held_ != nullptr; }
  T& operator*() const { return held_->value; }
  T* operator->() const { return &held_->value; }
  /// Returns whether other boxes hold the value too.
  bool is_shared() const { return held_ && held_->count.load(std::memory_order_acquire) > 1; }
  /// Returns whether both hold the same value object, or both are null.
  bool operator==(const SharedBox&) const = default;

 private:
  struct Held {
    std::atomic<std::size_t> count;
    T value;
  };

  void swap(SharedBox& other) noexcept { std::swap(held_, other.held_); }
  void hold() {
    if (held_) held_->count.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (held_ && held_->count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
  }

  Held* held_ = nullptr;
};

}  // namespace lathe
