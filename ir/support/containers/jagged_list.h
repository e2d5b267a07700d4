#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lathe {

/// Immutable lists of plain elements, numbered from 0 and stored in one array (compressed sparse rows). For the many
/// short lists of a graph.
template <class T>
class JaggedList {
 public:
  JaggedList() = default;
  /// fill(add) calls add(i, item) for each item of list number i < `lists`, in list order. It is called twice and
  /// must add the same items each time.
  template <class Fill>
  JaggedList(std::size_t lists, Fill&& fill) : first_(lists + 1, 0) {
    fill([&](std::size_t i, const T&) { ++first_[i + 1]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    items_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    fill([&](std::size_t i, const T& item) { items_[next[i]++] = item; });
  }

  std::size_t size() const { return first_.size() - 1; }
  std::span<const T> operator[](std::size_t i) const {
    return std::span(items_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<std::size_t> first_ = {0};  // by list, plus the end of the last
  std::vector<T> items_;
};

}  // namespace lathe
