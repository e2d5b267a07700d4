#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lathe::kernel {

/// The names that are visible at a position in a text, with the id of each.
class NameScope {
 public:
  /// Returns false if the name is visible already.
  bool define(std::string name, int id) {
    const auto [entry, is_new] = ids_.try_emplace(std::move(name), id);
    if (is_new) order_.push_back(entry->first);
    return is_new;
  }
  std::optional<int> find(const std::string& name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Returns the visible names, outermost first.
  std::vector<std::string_view> names() const { return {order_.begin(), order_.end()}; }

  /// `leave` removes the names defined since `enter` returned the mark.
  std::size_t enter() const { return order_.size(); }
  void leave(std::size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) ids_.erase(order_.back());
  }

 private:
  std::unordered_map<std::string, int> ids_;
  std::vector<std::string> order_;
};

}  // namespace lathe::kernel
