#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "ir/support/containers/shared_box.h"

namespace lathe {

/// A copy-on-write list: copies share elements until one of them changes, so copying only increments a count.
template <class T>
class SharedList {
 public:
  using value_type = T;

  SharedList() = default;
  SharedList(std::vector<T> items) : items_(items.empty() ? Box() : Box::make(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}

  const std::vector<T>& items() const {
    static const std::vector<T> none;
    return items_ ? *items_ : none;
  }
  operator const std::vector<T>&() const { return items(); }

  std::size_t size() const { return items_ ? items_->size() : 0; }
  bool empty() const { return !items_; }
  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }
  const T& operator[](std::size_t i) const { return (*items_)[i]; }

  void set(std::size_t i, T item) { own()[i] = std::move(item); }
  void push_back(T item) { own().push_back(std::move(item)); }
  void insert(std::size_t i, T item) {
    own().insert(items_->begin() + static_cast<std::ptrdiff_t>(i), std::move(item));
  }
  void erase(std::size_t i) {
    own().erase(items_->begin() + static_cast<std::ptrdiff_t>(i));
    if (items_->empty()) items_ = Box();
  }

  /// Returns whether both share one list in memory; such lists are equal without comparing elements.
  bool is_same(const SharedList& other) const { return items_ == other.items_; }
  bool operator==(const SharedList& other) const { return is_same(other) || items() == other.items(); }

 private:
  using Box = SharedBox<std::vector<T>>;

  /// Returns elements not shared with any copy.
  std::vector<T>& own() {
    if (!items_)
      items_ = Box::make();
    else if (items_.is_shared())
      items_ = Box::make(*items_);
    return *items_;
  }

  Box items_;  // null if empty
};

}  // namespace lathe
